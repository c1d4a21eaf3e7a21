#![no_main]

use chaingate_fuzz::whole_path::Gateway;
use std::cell::LazyCell;

thread_local! {
    /// Made once; libFuzzer runs everything on one thread.
    static GATEWAY: LazyCell<Gateway> = LazyCell::new(Gateway::start);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| GATEWAY.with(|gateway| gateway.run(data)));
