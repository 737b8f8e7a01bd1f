//! Fuzzes the target `must_gather` of olm_tests::fuzz.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| olm_tests::fuzz::run("must_gather", bytes));
