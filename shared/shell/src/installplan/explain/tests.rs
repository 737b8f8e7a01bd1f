//! How questions are read.
