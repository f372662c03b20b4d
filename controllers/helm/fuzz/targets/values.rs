//! Feeds the fuzzer's bytes to the check of `values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::values(data));
