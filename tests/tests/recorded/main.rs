//! Comparisons with what the real OLM wrote.

mod api_crds;
mod diagnosis;
mod go_json;
mod install_plan;
mod scenario_files;
