#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chaingate_fuzz::call_parser::run(data));
