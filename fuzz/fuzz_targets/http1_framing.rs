#![no_main]

use chaingate_fuzz::http1_framing::Readers;
use std::cell::LazyCell;

thread_local! {
    /// Made once; libFuzzer runs everything on one thread.
    static READERS: LazyCell<Readers> = LazyCell::new(Readers::start);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(READERS.with(|readers| readers.run(data))));
