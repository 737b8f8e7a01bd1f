//! Fuzzes the target `synthesize` of olm_tests::fuzz.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| olm_tests::fuzz::run("synthesize", bytes));
