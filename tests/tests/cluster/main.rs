//! Tests on a real control plane that start it through `olm_tests::control_plane`. One program, because each more takes seconds to link.

mod approval;
mod catalog;
mod control_plane;
mod describe;
mod install_plan_command;
mod install_plan_steps;
mod olm;
mod operator;
mod operatorgroup;
mod operatorgroup_lint;
mod packages;
mod plain_bundles;
mod sweep;
mod synthesize;
mod take_over;
