//! Feeds the fuzzer's bytes to the check of `yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::yaml(data));
