//! Documents about catalogs.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::shared::Finding;

forms! {
    /// A package of a catalog: catalog list PACKAGE.
    Package { #[schemars(flatten)] package: PackageItem, }
    /// Packages of a catalog: catalog list.
    PackageList {
        /// Invalid packages, which are not served.
        invalid_packages: Vec<String>,
        /// The valid packages, by name.
        items: Vec<PackageItem>,
    }
    /// A package of a catalog.
    PackageItem {
        /// Name of the package, which Subscriptions specify.
        name: String,
        /// The channel of Subscriptions that specify none.
        default_channel: Option<String>,
        /// The author's deprecation message for the package.
        deprecation: Option<String>,
        /// The channels of the package, by name.
        channels: Option<Vec<PackageChannel>>,
    }
    /// A channel of a package.
    PackageChannel {
        /// Name of the channel.
        name: String,
        /// The bundle that no other entry of the channel replaces or skips.
        head: Option<String>,
        /// The author's deprecation message for the channel.
        deprecation: Option<String>,
        /// The versions, newest first.
        entries: Option<Vec<PackageEntry>>,
    }
    /// An entry of a channel: a bundle and its update edges.
    PackageEntry {
        /// Name of the bundle.
        name: String,
        /// Version of the bundle.
        version: Option<String>,
        /// The bundle that it replaces in this channel.
        replaces: Option<String>,
        /// The bundles that updates to this one can skip.
        skips: Option<Vec<String>>,
        /// Every version in this range can be updated directly to this one.
        skip_range: Option<String>,
        /// Image of the bundle; absent if the catalog contains its objects.
        image: Option<String>,
        /// The author's deprecation message for the bundle.
        deprecation: Option<String>,
    }
    /// The findings about a catalog: catalog validate.
    CatalogValidation {
        /// Whether the catalog is valid by the rules in use.
        passed: bool,
        /// Whether the rules of opm validate were used (--strict).
        strict: bool,
        /// The number of served packages.
        packages: u64,
        /// The number of bundles in the served packages.
        bundles: u64,
        /// Invalid packages, which are not served.
        invalid_packages: Vec<String>,
        /// The findings, by file and line.
        findings: Vec<Finding>,
    }
    /// The differences between two catalogs: catalog diff.
    CatalogDiff {
        /// The packages that differ, by name.
        packages: Vec<ChangedPackage>,
        /// The versions that lose their update path to the head of their channel.
        stranded: Vec<Stranded>,
    }
    /// A package that differs.
    ChangedPackage {
        /// Name of the package.
        name: String,
        /// Which of the catalogs contain the package.
        change: CatalogChange,
        /// The fields that differ: defaultChannel, deprecation.
        fields: Vec<ChangedField>,
        /// The channels that differ, by name.
        channels: Vec<ChangedChannel>,
        /// The bundles that differ, by name.
        bundles: Vec<ChangedBundle>,
    }
    /// A channel that differs.
    ChangedChannel {
        /// Name of the channel.
        name: String,
        /// Which of the catalogs contain the channel.
        change: CatalogChange,
        /// The fields that differ: head, deprecation.
        fields: Vec<ChangedField>,
        /// The entries that differ, by name.
        entries: Vec<ChangedEntry>,
    }
    /// An entry of a channel that differs.
    ChangedEntry {
        /// Name of the bundle.
        name: String,
        /// Which of the channels contain the entry.
        change: CatalogChange,
        /// The fields that differ: replaces, skips, skipRange.
        fields: Vec<ChangedField>,
    }
    /// A bundle that differs.
    ChangedBundle {
        /// Name of the bundle.
        name: String,
        /// Version of the bundle; that of the new catalog if it contains the bundle.
        version: String,
        /// Which of the catalogs contain the bundle.
        change: CatalogChange,
        /// The fields that differ: version, image, properties, dependencies, objects, deprecation.
        fields: Vec<ChangedField>,
    }
    /// A field that differs. Of lists it has only the removed and added items.
    ChangedField {
        /// Name of the field in the catalog.
        field: String,
        /// Values in the old catalog only.
        old: Vec<String>,
        /// Values in the new catalog only.
        new: Vec<String>,
    }
    /// A version from which updates no longer lead to the head of its channel.
    Stranded {
        /// Package of the bundle.
        package: String,
        /// The channel; empty for a Subscription that specifies none.
        channel: String,
        /// Name of the bundle.
        name: String,
        /// Why it is stranded, as a sentence without a full stop.
        reason: String,
        /// Other channels of the new catalog in which it has an update path to the head.
        alternative_channels: Vec<String>,
        /// Namespace of the Subscription that installed it; absent without --installed.
        namespace: Option<String>,
        /// Name of the Subscription that installed it; absent without --installed.
        subscription: Option<String>,
    }
    /// The bundles added to a catalog: catalog add.
    CatalogAddition {
        /// Whether no file was written (--dry-run).
        dry_run: bool,
        /// The bundles that are added, in the order of the command line.
        bundles: Vec<AddedBundle>,
        /// The files of the catalog that are created or changed.
        files: Vec<String>,
    }
    /// A bundle that is added to a catalog.
    AddedBundle {
        /// Name of the bundle.
        name: String,
        /// Package of the bundle.
        package: String,
        /// Version of the bundle.
        version: String,
        /// Image of the bundle; empty if the catalog contains its objects.
        image: String,
        /// The channels that it is added to.
        channels: Vec<AddedTo>,
        /// The file of the catalog that contains it.
        file: String,
    }
    /// A new entry of a channel.
    AddedTo {
        /// Name of the channel.
        name: String,
        /// Whether it is now the head of the channel.
        head: bool,
        /// The bundle that it replaces; empty if none.
        replaces: String,
        /// The bundles that updates to this one can skip.
        skips: Vec<String>,
        /// The range of versions that can be updated directly to this one; empty if none.
        skip_range: String,
    }
    /// The update graph: catalog graph.
    UpdateGraph {
        /// The requested packages, by name.
        packages: Vec<GraphPackage>,
    }
    /// A package and the update graphs of its channels.
    GraphPackage {
        /// Name of the package.
        name: String,
        /// The channel of Subscriptions that specify none.
        default_channel: String,
        /// The requested channels, by name.
        channels: Vec<GraphChannel>,
    }
    /// The update graph of a channel.
    GraphChannel {
        /// Name of the channel.
        name: String,
        /// The bundle that no other entry of the channel replaces or skips.
        head: String,
        /// The author's deprecation message for the channel.
        deprecation: Option<String>,
        /// Why OLM installs nothing from the channel; absent if it does.
        problem: Option<String>,
        /// The versions that may be installed, including those that the channel only mentions.
        versions: Vec<GraphVersion>,
    }
    /// A version that may be installed, and its update.
    GraphVersion {
        /// Name of the bundle.
        name: String,
        /// Whether it has an entry in the channel; otherwise other entries only mention it.
        in_channel: bool,
        /// The entry that skips it, so that OLM never installs it.
        skipped_by: Option<Value>,
        /// The version to which OLM updates it; absent if it has no update.
        next: Option<GraphNext>,
        /// Whether its updates reach the head of the channel.
        reaches_head: bool,
        /// Why its updates do not reach the head.
        reason: Option<String>,
        /// Version of the bundle.
        version: Option<String>,
        /// The bundle that it replaces in this channel.
        replaces: Option<String>,
        /// The bundles that updates to this one can skip.
        skips: Option<Vec<String>>,
        /// Every version in this range can be updated directly to this one.
        skip_range: Option<String>,
        /// The author's deprecation message for the bundle.
        deprecation: Option<String>,
        /// The Subscriptions to this channel that have it installed; absent without --installed-from and without a cluster.
        installed_by: Option<Vec<GraphSubscription>>,
    }
    /// A Subscription that has a version installed.
    GraphSubscription {
        /// Namespace of the Subscription.
        namespace: String,
        /// Name of the Subscription.
        subscription: String,
    }
    /// The next version of an update path.
    GraphNext {
        /// Name of the bundle.
        name: String,
        /// The edge that permits the update: replaces, skips or skipRange.
        by: String,
    }
    /// The update path from one version: catalog graph --from.
    UpdatePath {
        /// Package of the bundles.
        package: String,
        /// Channel of the updates.
        channel: String,
        /// The bundle at which the path begins.
        from: String,
        /// The bundle that was requested with --to; absent for the head of the channel.
        to: Option<String>,
        /// Whether the path reaches its target.
        reaches_target: bool,
        /// The updates in order, one per InstallPlan.
        hops: Vec<Hop>,
        /// Why the path does not reach its target.
        reason: Option<String>,
        /// Other channels in which there is a path to the target.
        other_channels: Vec<String>,
    }
    /// An update from one bundle to the next.
    Hop {
        /// The bundle that is replaced.
        from: String,
        /// The bundle that is installed.
        to: String,
        /// Version of the installed bundle.
        version: String,
        /// The edge that permits the update: replaces, skips or skipRange.
        by: String,
        /// The range that contains the replaced version, if the edge is skipRange.
        skip_range: Option<String>,
    }
    /// The bundles that OLM would install, with reasons: catalog resolve.
    Resolution {
        /// Whether the resolution succeeds.
        result: ResolutionResult,
        /// The bundles that are installed, including dependencies; absent if the resolution fails.
        bundles: Option<Vec<ChosenBundle>>,
        /// Problems that do not prevent the resolution, for example catalogs that cannot be read.
        warnings: Option<Vec<Statement>>,
        /// OLM's own message about the failure.
        message: Option<String>,
        /// The requirements that contradict each other, as a derivation.
        reasons: Option<Vec<Statement>>,
        /// Bundles that cannot be installed, with the reasons.
        excluded: Option<Vec<ExcludedBundle>>,
        /// Changes with which the resolution would succeed: the field `repair` contains the kind, the other fields depend on it.
        repairs: Option<Vec<Map<String, Value>>>,
    }
    /// A bundle that is installed.
    ChosenBundle {
        #[schemars(flatten)] bundle: BundleName,
        /// The installed ClusterServiceVersion that it replaces; empty if none.
        replaces: String,
        /// What requires the bundle.
        reasons: Vec<Statement>,
        /// Bundles that would satisfy the same requirement and were not chosen.
        rejected: Vec<ExcludedBundle>,
    }
    /// A bundle that is not installed.
    ExcludedBundle {
        #[schemars(flatten)] bundle: BundleName,
        /// Why the bundle is not installed.
        reason: Statement,
    }
    /// A bundle and the catalog that contains it.
    BundleName {
        /// Package of the bundle.
        package: String,
        /// Name of the bundle.
        name: String,
        /// Version of the bundle, as in the catalog.
        version: String,
        /// Channel of the bundle; empty for an existing ClusterServiceVersion.
        channel: String,
        /// Name of the catalog; empty for an existing ClusterServiceVersion.
        catalog: String,
        /// Namespace of the catalog.
        catalog_namespace: String,
    }
    /// A reason as a code and as text.
    Statement {
        /// The code of the reason, for programs.
        reason: String,
        /// The reason as a sentence without a full stop.
        text: String,
    }
    /// The images of a catalog: catalog render --images -o yaml.
    ImageList {
        /// The images, by name.
        images: Vec<CatalogImage>,
    }
    /// An image, and the bundles that use it.
    CatalogImage {
        /// Reference of the image, as in the catalog.
        image: String,
        /// The bundles that are the image or list it among their related images.
        bundles: Vec<String>,
    }
}

/// Which of two catalogs contain something.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum CatalogChange {
    /// Only the new catalog contains it.
    Added,
    /// Only the old catalog contains it.
    Removed,
    /// Both catalogs contain it, and it differs.
    Changed,
}

/// Whether a resolution succeeds.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum ResolutionResult {
    /// The requirements can be satisfied.
    Resolved,
    /// The requirements contradict each other.
    Failed,
}
