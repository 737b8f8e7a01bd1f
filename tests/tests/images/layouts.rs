//! OCI layouts and archives: which content of an image is extracted, and what is refused.

use std::fs;
use std::io::Write;

use olm_shell::image::{CATALOG_LABEL, Kind, Location, Options, Requested};
use olm_tests::images::{Compression, Image, Layer, compress, digest};
use tar::EntryType;

use super::{expected, files, pull, refused, small};

const LABELS: [(&str, &str); 1] = [(CATALOG_LABEL, "/configs")];
const BUNDLE: [(&str, &str); 3] = [
    ("operators.operatorframework.io.bundle.package.v1", "rose"),
    ("operators.operatorframework.io.bundle.manifests.v1", "m/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
];

fn options() -> Options {
    Options { limits: small(), ..Options::default() }
}

async fn pull_image(image: &Image, options: &Options) -> Result<olm_shell::image::Content, olm_shell::cli::CliError> {
    let folder = tempfile::tempdir().unwrap();
    image.write_layout(folder.path()).unwrap();
    pull(&format!("oci:{}", folder.path().display()), options).await
}

fn image(layers: Vec<Layer>) -> Image {
    Image::new(&LABELS, layers.into_iter().map(|l| l.finish(Compression::Gzip)).collect())
}

#[tokio::test]
async fn only_the_labelled_folder_is_extracted_with_any_compression() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let long = "x/".repeat(60) + "y.yaml";
        let layer = Layer::default()
            .file("bin/opm", "a program")
            .folder("configs")
            .file("./configs/rose/catalog.yaml", "schema: olm.package\n")
            .file("/configs/absolute.yaml", "a")
            .file("configsandmore/no.yaml", "n")
            .file(&format!("configs/{long}"), "deep");
        let content = pull_image(&Image::new(&LABELS, vec![layer.finish(compression)]), &options()).await.unwrap();
        let wanted = [("rose/catalog.yaml", "schema: olm.package\n"), ("absolute.yaml", "a"), (&long, "deep")];
        assert_eq!(files(&content.root), expected(&wanted), "{compression:?}");
        assert_eq!(content.kind, Kind::Catalog);
        assert_eq!(content.warnings, [""; 0]);
    }
}

#[tokio::test]
async fn manifests_and_metadata_are_read_from_the_labelled_folders() {
    let layer = Layer::default().file("m/csv.yaml", "c").file("metadata/annotations.yaml", "a").file("tests/x", "t");
    let content = pull_image(&Image::new(&BUNDLE, vec![layer.finish(Compression::Gzip)]), &options()).await.unwrap();
    assert_eq!(content.kind, Kind::Bundle);
    assert_eq!(files(&content.root), expected(&[("manifests/csv.yaml", "c"), ("metadata/annotations.yaml", "a")]));
}

#[tokio::test]
async fn upper_layers_replace_and_delete_files_of_lower_ones() {
    let content = pull_image(
        &image(vec![
            Layer::default()
                .file("configs/kept", "1")
                .file("configs/replaced", "1")
                .file("configs/gone", "1")
                .file("configs/folder/a", "1")
                .file("configs/opaque/old", "1")
                .file("configs/becomes-folder", "1"),
            Layer::default()
                .file("configs/replaced", "2")
                .file("configs/.wh.gone", "")
                .file("configs/.wh.folder", "")
                // The marker may follow the files that the same layer adds.
                .file("configs/opaque/new", "2")
                .file("configs/opaque/.wh..wh..opq", "")
                .file("configs/becomes-folder/file", "2"),
        ]),
        &options(),
    )
    .await;
    let wanted = [("kept", "1"), ("replaced", "2"), ("opaque/new", "2"), ("becomes-folder/file", "2")];
    assert_eq!(files(&content.unwrap().root), expected(&wanted));
    // A deleted folder deletes everything below it.
    let all = image(vec![
        Layer::default().file("configs/old", "1"),
        Layer::default().file(".wh.configs", "").file("configs/new", "2"),
    ]);
    assert_eq!(files(&pull_image(&all, &options()).await.unwrap().root), expected(&[("new", "2")]));
}

#[tokio::test]
async fn links_are_followed_inside_and_reported_outside() {
    let layer = Layer::default()
        .file("configs/real/catalog.yaml", "c")
        .link("configs/relative", "real/catalog.yaml")
        .link("configs/absolute", "/configs/real/catalog.yaml")
        .link("configs/chain", "relative")
        .link("configs/deep/../up", "real/../real/catalog.yaml")
        .link("configs/out", "/etc/passwd")
        .link("configs/escape", "../../../../etc/passwd")
        .link("configs/loop", "loop")
        .link("configs/folder", "real")
        .member("configs/hard", EntryType::Link, "configs/real/catalog.yaml", &[])
        .member("configs/hard-out", EntryType::Link, "etc/passwd", &[])
        .member("configs/device", EntryType::Char, "", &[])
        .member("configs/pipe", EntryType::Fifo, "", &[]);
    let content = pull_image(&image(vec![layer]), &options()).await.unwrap();
    let c = |name| (name, "c");
    let wanted = ["real/catalog.yaml", "relative", "absolute", "chain", "up", "hard"].map(c);
    assert_eq!(files(&content.root), expected(&wanted));
    let mut told: Vec<&str> = content.warnings.iter().filter_map(|w| w.split(':').next()).collect();
    told.sort_unstable();
    let left_out = ["device", "escape", "folder", "hard-out", "loop", "out", "pipe"];
    assert_eq!(told, left_out.map(|name| format!("configs/{name}")));
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_folder() {
    for path in ["../evil", "configs/../../evil", "/../evil", "configs/a/../../../evil"] {
        let result = pull_image(&image(vec![Layer::default().file(path, "x")]), &options()).await;
        refused(result, &["leads out of the image", path]);
    }
    // A file below a link of a lower layer is extracted to its own path.
    let content = pull_image(
        &image(vec![
            Layer::default().link("configs/link", "/tmp").file("configs/ok", "1"),
            Layer::default().file("configs/link/file", "2"),
        ]),
        &options(),
    )
    .await;
    assert_eq!(files(&content.unwrap().root), expected(&[("ok", "1"), ("link/file", "2")]));
    let label = [(CATALOG_LABEL, "../..")];
    let outside = Image::new(&label, vec![Layer::default().file("a", "1").finish(Compression::Gzip)]);
    refused(pull_image(&outside, &options()).await, &["outside of it"]);
}

#[tokio::test]
async fn decompression_bombs_are_stopped_early() {
    let bomb = vec![0; 8 << 20];
    for compression in [Compression::Gzip, Compression::Zstd] {
        let outside = Layer::default().file("bin/zeros", &bomb).finish(compression);
        refused(pull_image(&Image::new(&LABELS, vec![outside]), &options()).await, &["when it is unpacked"]);
        let inside = Layer::default().file("configs/zeros", &bomb).finish(compression);
        refused(pull_image(&Image::new(&LABELS, vec![inside]), &options()).await, &["configs/zeros", "8388608"]);
    }
    let many = (0..200).fold(Layer::default(), |layer, n| layer.file(&format!("configs/{n}"), ""));
    refused(pull_image(&image(vec![many]), &options()).await, &["more than 100 files"]);
    // Copies made for links count, too.
    let big = vec![b'x'; 300 << 10];
    let links =
        (0..5).fold(Layer::default().file("configs/big", &big), |layer, n| layer.link(&format!("configs/{n}"), "big"));
    refused(pull_image(&image(vec![links]), &options()).await, &["more than 1048576 bytes"]);
    let layers = (0..9).map(|n| Layer::default().file(&format!("configs/{n}"), "")).collect();
    refused(pull_image(&image(layers), &options()).await, &["9 layers"]);
    // A name of a megabyte is invalid.
    let named = Layer::default().member("././@LongLink", EntryType::GNULongName, "", &vec![b'n'; 1 << 20]);
    refused(pull_image(&image(vec![named]), &options()).await, &["a name that is too long"]);
}

#[tokio::test]
async fn damaged_layers_are_refused() {
    let good = Layer::default().file("configs/a", "1").finish(Compression::Gzip);
    let changed = Image::new(&LABELS, vec![good.clone()]);
    for (damage, words) in [
        (&good[..good.len() / 2], ["broke off", "hint"]),
        (&[&good[..], b"more"].concat()[..], ["longer than", ""]),
        (&[&good[..good.len() - 1], b"!"].concat()[..], ["has the digest", "push it again"]),
        (&[][..], ["broke off", ""]),
    ] {
        let mut image = changed.clone();
        image.blobs.insert(digest(&good), damage.to_vec());
        refused(pull_image(&image, &options()).await, &words);
    }
    // Correct digests of invalid content.
    for (layer, words) in [
        (b"this is no tar archive, but long enough to look like one".repeat(20), ["not a tar archive"]),
        (compress(b"nor is this", Compression::Gzip), ["not a tar archive"]),
    ] {
        refused(pull_image(&Image::new(&LABELS, vec![layer]), &options()).await, &words);
    }
}

#[tokio::test]
async fn an_image_that_is_neither_catalog_nor_bundle_is_reported_with_its_labels() {
    let layer = || vec![Layer::default().file("configs/a", "1").finish(Compression::Gzip)];
    refused(pull_image(&Image::new(&[], layer()), &options()).await, &["neither a catalog nor a bundle", "no labels"]);
    refused(pull_image(&Image::new(&[("color", "red")], layer()), &options()).await, &["its labels are color"]);
    let database = [("operators.operatorframework.io.index.database.v1", "/database/index.db")];
    refused(pull_image(&Image::new(&database, layer()), &options()).await, &["opm migrate"]);
    let elsewhere = [(CATALOG_LABEL, "/elsewhere")];
    refused(pull_image(&Image::new(&elsewhere, layer()), &options()).await, &["/elsewhere, which does not exist"]);
    let mut no_digest = Image::new(&LABELS, layer());
    no_digest.manifest["layers"][0]["digest"] = "sha256:../../../etc/passwd".into();
    refused(pull_image(&no_digest, &options()).await, &["is not a sha256 or sha512 digest"]);
    let mut garbage = Image::new(&LABELS, layer());
    garbage.manifest = serde_json::json!([1, 2]);
    refused(pull_image(&garbage, &options()).await, &["its manifest is invalid"]);
}

#[tokio::test]
async fn the_image_for_this_platform_is_selected_from_an_index() {
    let of = |text: &str| Image::catalog(&[("platform", text)]);
    let here = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };
    let attestation = of("attestation");
    let index = Image::index(&[
        ("windows/amd64", &of("windows")),
        ("unknown/unknown", &attestation),
        ("linux/s390x", &of("s390x")),
        (here, &of("here")),
    ]);
    let content = pull_image(&index, &options()).await.unwrap();
    assert_eq!(files(&content.root), expected(&[("platform", "here")]));
    assert_eq!(content.digest, index.digest());
    // Catalogs contain no programs: any platform is accepted.
    let other = Image::index(&[("unknown/unknown", &attestation), ("linux/s390x", &of("s390x"))]);
    assert_eq!(files(&pull_image(&other, &options()).await.unwrap().root), expected(&[("platform", "s390x")]));
    refused(pull_image(&Image::index(&[("unknown/unknown", &attestation)]), &options()).await, &["names no image"]);
}

#[tokio::test]
async fn an_archive_is_read_like_a_layout() {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::catalog(&[("catalog.yaml", "c")]);
    image.write_layout(folder.path()).unwrap();
    let archive = folder.path().join("image.tar");
    let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
    for name in ["oci-layout", "index.json", "blobs"] {
        let path = folder.path().join(name);
        if path.is_dir() { tar.append_dir_all(name, path) } else { tar.append_path_with_name(path, name) }.unwrap();
    }
    tar.finish().unwrap();
    for location in [format!("oci-archive:{}", archive.display()), format!("oci:{}:latest", folder.path().display())] {
        let content = pull(&location, &options()).await.unwrap();
        assert_eq!(files(&content.root), expected(&[("catalog.yaml", "c")]));
    }
    refused(
        pull(&format!("oci:{}:other", folder.path().display()), &options()).await,
        &["no image \"other\"", "latest"],
    );
    let mut other = fs::File::create(folder.path().join("other")).unwrap();
    other.write_all(b"not a tar").unwrap();
    refused(pull(&format!("oci-archive:{}/other", folder.path().display()), &options()).await, &["hint"]);
    refused(pull(&format!("oci:{}/missing", folder.path().display()), &options()).await, &["cannot read"]);
}

#[tokio::test]
async fn the_cache_is_shared_and_repairs_itself() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let image = Image::catalog(&[("catalog.yaml", "c"), ("more.yaml", "m")]);
    image.write_layout(folder.path()).unwrap();
    let location = format!("oci:{}", folder.path().display());
    let options = Options { cache: Some(cache.path().to_owned()), ..options() };
    let wanted = expected(&[("catalog.yaml", "c"), ("more.yaml", "m")]);
    let pulls = (0..8).map(|_| pull(&location, &options));
    let pulled = futures::future::join_all(pulls).await;
    let roots: Vec<_> = pulled.into_iter().map(|content| content.unwrap().root).collect();
    assert!(roots.iter().all(|root| root == &roots[0] && root.starts_with(cache.path())));
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1, "nothing else is left in the cache");
    assert_eq!(files(&roots[0]), wanted);
    // The layers are not read a second time.
    let layer = image.blobs.keys().find(|d| image.manifest["layers"][0]["digest"] == **d).unwrap();
    let blob = folder.path().join("blobs/sha256").join(layer.trim_start_matches("sha256:"));
    let bytes = fs::read(&blob).unwrap();
    fs::remove_file(&blob).unwrap();
    assert_eq!(files(&pull(&location, &options).await.unwrap().root), wanted);
    // A damaged file is extracted again.
    fs::write(&blob, bytes).unwrap();
    fs::remove_file(roots[0].join("more.yaml")).unwrap();
    assert_eq!(files(&pull(&location, &options).await.unwrap().root), wanted);
}

#[tokio::test]
async fn a_refused_image_leaves_nothing_behind() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options { cache: Some(cache.path().to_owned()), ..options() };
    refused(pull_image(&image(vec![Layer::default().file("../evil", "x")]), &options).await, &[]);
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_folder_of_a_catalog_overrides_its_label() {
    let layer = Layer::default().file("configs/a.yaml", "a").file("other/b.yaml", "b");
    let image = image(vec![layer]);
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    image.write_layout(folder.path()).unwrap();
    let location: Location = format!("oci:{}", folder.path().display()).parse().unwrap();
    let options = Options { cache: Some(cache.path().to_owned()), ..options() };
    // Each of them has a separate cache entry.
    for _ in 0..2 {
        for (wanted, expected_files) in
            [(Requested::Catalog, [("a.yaml", "a")]), (Requested::CatalogIn("/other".to_owned()), [("b.yaml", "b")])]
        {
            let content = olm_shell::image::pull(&location, wanted.clone(), &options).await.unwrap();
            assert_eq!(files(&content.root), expected(&expected_files), "{wanted:?}");
            assert_eq!(content.kind, Kind::Catalog);
        }
    }
    for (folder, words) in [("/nowhere", "which does not exist"), ("../..", "outside of it")] {
        let result = olm_shell::image::pull(&location, Requested::CatalogIn(folder.to_owned()), &options).await;
        refused(result, &["spec.grpcPodConfig.extractContent.catalogDir", words]);
    }
}
