//! Every rule finds what it should, and not what is nearly the same.
