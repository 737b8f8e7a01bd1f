//! The registry of a bundle that `operator run` runs on a cluster of OLM: the command of its container, with volumes as kubelet mounts
//! them, serves the catalog. `catalog serve` has the place of opm.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_core::api::object::{self, list, text};
use olm_core::bundle::{Bundle, File, Rendered};
use olm_core::catalog::ephemeral::{Ephemeral, Place, RegistryPod};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Home, captured};

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a bundle whose description cannot be compressed.
fn bundle(version: &str, bytes: usize) -> Rendered {
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    })
    .take(bytes)
    .collect();
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("rose.v{version}") },
        "spec": { "version": version, "description": STANDARD.encode(noise) },
    });
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: rose\n";
    let files = [
        File::new("rose/manifests/csv.yaml", csv.to_string().into_bytes()),
        File::new("rose/metadata/annotations.yaml", annotations.as_bytes()),
    ];
    Bundle::read("rose", &files).unwrap().render().unwrap()
}

/// Writes the volume of a ConfigMap as kubelet does: links to a folder that is replaced atomically.
fn mount(config_map: &Value, at: &Path) {
    let content = at.join("..2026_01_01_00_00_00.123456789");
    fs::create_dir_all(&content).unwrap();
    symlink(content.file_name().unwrap(), at.join("..data")).unwrap();
    for (key, data) in config_map["binaryData"].as_object().unwrap() {
        fs::write(content.join(key), STANDARD.decode(data.as_str().unwrap()).unwrap()).unwrap();
        symlink(Path::new("..data").join(key), at.join(key)).unwrap();
    }
}

#[test]
fn the_container_of_a_registry_serves_all_parts_of_a_catalog() {
    let home = Home::new();
    let place = Place { namespace: "shop", name: None, channel: None };
    let first = Ephemeral::new(place, &bundle("1.0.0", 700_000)).unwrap();
    let catalog = Ephemeral::upgraded(("shop", first.name()), first.blobs(), &bundle("2.0.0", 700_000), "rose.v1.0.0");
    let catalog = catalog.unwrap();
    let config_maps = catalog.config_maps();
    assert!(config_maps.len() > 1, "the catalog has several parts");

    let pod =
        catalog.registry(RegistryPod { image: "example.com/opm:1", sets_user: true })[1]["spec"]["template"]["spec"]
            .clone();
    let container = &list(&pod, &["containers"])[0];
    let root = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let here = |path: &str| root.path().join(path.trim_start_matches('/'));
    for (mount_of, volume) in list(container, &["volumeMounts"]).iter().zip(list(&pod, &["volumes"])) {
        assert_eq!(mount_of["name"], volume["name"]);
        let at = here(text(mount_of, &["mountPath"]));
        fs::create_dir_all(&at).unwrap();
        let name = text(volume, &["configMap", "name"]);
        if let Some(config_map) = config_maps.iter().find(|config_map| object::name(config_map) == name) {
            mount(config_map, &at);
        } else {
            assert_eq!(volume["emptyDir"], json!({}), "{volume}");
        }
    }
    // The port is of the pod; here it may be in use.
    let opm = home.path("opm");
    fs::write(
        &opm,
        "#!/bin/sh\n[ \"$1 $3 $4\" = 'serve --port 50051' ] && exec kubectl-olm-catalog serve \"$2\" --port 0\n",
    )
    .unwrap();
    fs::set_permissions(&opm, fs::Permissions::from_mode(0o755)).unwrap();
    let words: Vec<String> = list(container, &["command"])
        .iter()
        .map(|word| {
            let word = word.as_str().unwrap().replace("/parts/", &format!("{}/", here("parts").display()));
            word.replace(" /catalog", &format!(" {}", here("catalog").display()))
        })
        .collect();
    let path = format!("{}:/usr/bin:/bin", home.path("").display());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear().env("PATH", path).env("HOME", root.path());
    let mut server = Server(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let said = BufReader::new(server.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = Vec::new();
    let port = said.inspect(|line| lines.push(line.clone())).find_map(|line| {
        Some(line.split_once("127.0.0.1:")?.1.split(|c: char| !c.is_ascii_digit()).next()?.to_owned())
    });
    assert!(port.is_some(), "it does not serve: {lines:?}");
    let address = format!("grpc://127.0.0.1:{}", port.unwrap());
    let listed = home.command("kubectl-olm-catalog").args(["render", &address, "-o", "json"]).output().unwrap();
    let (code, out, err) = captured(&listed);
    assert_eq!(code, 0, "{err}");
    let blobs: Vec<Value> = serde_json::Deserializer::from_str(&out).into_iter().map(Result::unwrap).collect();
    let served = |schema: &str| blobs.iter().filter(|blob| blob["schema"] == schema).count();
    assert_eq!([served("olm.package"), served("olm.channel"), served("olm.bundle")], [1, 1, 2], "{err}");
}
