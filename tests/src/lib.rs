//! Test support shared by several crates.

pub mod bench;
pub mod browser;
pub mod control_plane;
pub mod data;
pub mod faulty_api;
pub mod fuzz;
pub mod hostile;
pub mod house;
pub mod images;
pub mod krew;
pub mod plugin;
pub mod registry;
pub mod scenario;
pub mod sim_api;
pub mod sweep;
pub mod well_formed;
