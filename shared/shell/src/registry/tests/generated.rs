//! The generated files are as they would be generated today.

use std::path::{Path, PathBuf};

/// The files that tonic generates from `api.proto` now, the halves of the service each in their own.
fn generate() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registry");
    let descriptors = protox::compile([folder.join("api.proto")], [&folder]).unwrap();
    let generated = |client: bool, server: bool| {
        let out = tempfile::tempdir().unwrap();
        let builder = tonic_prost_build::configure().build_client(client).build_server(server).disable_comments(["."]);
        builder.out_dir(out.path()).compile_fds(descriptors.clone()).unwrap();
        std::fs::read_to_string(out.path().join("api.rs")).unwrap()
    };
    let messages = generated(false, false);
    let file = |name: &str, what: &str, uses: &str, code: &str| {
        let text = format!("//! {what} of the registry's protocol. @generated from api.proto.\n\n{uses}{code}");
        (folder.join("proto").join(name), text)
    };
    let service = |client, server| {
        let whole = generated(client, server);
        whole.strip_prefix(&messages).unwrap().to_owned()
    };
    vec![
        file("messages.rs", "The messages", "", &messages),
        file("client.rs", "The client", "use super::messages::*;\n\n", &service(true, false)),
        file("server.rs", "The server", "use super::messages::*;\n\n", &service(false, true)),
    ]
}

#[test]
fn generated_code_is_fresh() {
    for (path, text) in generate() {
        if std::env::var_os("OLM_GENERATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap();
        assert!(found == text, "{}: OLM_GENERATE=1 cargo test -p olm-shell generated_code_is_fresh", path.display());
    }
}
