//! Bytes of the fuzzer come in, a crash goes out where a check of `template` does not hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::template(data));
