//! The generated files are up to date.

use std::path::{Path, PathBuf};

use prost::Message;

/// The files that tonic generates from `api.proto`, with client and server in separate files.
fn generate() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registry");
    let compile = |files: &[&str]| protox::compile(files.iter().map(|file| folder.join(file)), [&folder]).unwrap();
    let code = |files: &[&str], client: bool, server: bool| {
        let out = tempfile::tempdir().unwrap();
        let builder = tonic_prost_build::configure().build_client(client).build_server(server).disable_comments(["."]);
        builder.out_dir(out.path()).compile_fds(compile(files)).unwrap();
        std::fs::read_to_string(out.path().join("api.rs")).unwrap()
    };
    let generated = |client, server| code(&["api.proto"], client, server);
    let messages = generated(false, false);
    let file = |name: &str, what: &str, uses: &str, code: &str| {
        let text = format!("//! {what} of the registry's protocol. @generated from api.proto.\n\n{uses}{code}");
        (folder.join("proto").join(name), text.into_bytes())
    };
    let service = |client, server| {
        let whole = generated(client, server);
        whole.strip_prefix(&messages).unwrap().to_owned()
    };
    vec![
        file("messages.rs", "The messages", "", &messages),
        file("client.rs", "The client", "use super::messages::*;\n\n", &service(true, false)),
        file("server.rs", "The server", "use super::messages::*;\n\n", &service(false, true)),
        file("experimental.rs", "The experimental part", "", &code(&["experimental.proto"], true, true)),
        (folder.join("proto/api.bin"), compile(&["api.proto", "experimental.proto"]).encode_to_vec()),
    ]
}

#[test]
fn generated_code_is_fresh() {
    for (path, text) in generate() {
        if std::env::var_os("OLM_GENERATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read(&path).unwrap_or_default();
        assert!(found == text, "{}: OLM_GENERATE=1 cargo test -p olm-shell generated_code_is_fresh", path.display());
    }
}
