#![no_main]

use chaingate_fuzz::evm::Machine;
use std::cell::LazyCell;

thread_local! {
    /// Made once; libFuzzer runs everything on one thread.
    static MACHINE: LazyCell<Machine> = LazyCell::new(Machine::start);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| MACHINE.with(|machine| machine.run(data)));
