//! The arguments that describe the group to generate.

use olm_shell::operatorgroup::compile::{InstallMode, PartialGroupRequest};
use olm_shell::operatorgroup::operator::Operator;

/// The group, and the operator that it is for.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GroupRequestArguments {
    /// Name of the OperatorGroup [default: that of the package, else of the namespace]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the operator, and so of the group [default: the context's namespace]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// Which namespaces the operator watches: OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces [default:
    /// derived from the target namespaces; without any, OwnNamespace]
    #[arg(long, value_name = "MODE")]
    install_mode: Option<InstallMode>,
    /// Namespaces to watch; '' stands for all
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    target_namespaces: Vec<String>,
    /// Check that the operator of this bundle supports the namespaces: a directory, an image, or an OCI layout
    /// (oci:PATH)
    #[arg(long, value_name = "REF", conflicts_with = "package")]
    bundle: Option<String>,
    /// Check that the operator of this package supports the namespaces; a range such as '>=1.2.0 <2.0.0' selects its
    /// newest version in it
    #[arg(long, value_name = "PACKAGE[@RANGE]")]
    package: Option<String>,
    /// ServiceAccount whose permissions are used to install the operator
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
}

impl GroupRequestArguments {
    /// Converts the arguments to the shell's type.
    pub(crate) fn into_request(self) -> PartialGroupRequest {
        let Self { name, namespace, install_mode, target_namespaces, bundle, package, service_account } = self;
        PartialGroupRequest {
            name,
            namespace,
            mode: install_mode,
            targets: target_namespaces,
            operator: bundle.map(Operator::Bundle).or_else(|| package.map(Operator::Package)),
            service_account,
        }
    }

    /// Returns whether no argument other than the namespace is given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { name, install_mode, target_namespaces, bundle, package, service_account, namespace: _ } = self;
        [name, bundle, package, service_account].iter().all(|text| text.is_none())
            && install_mode.is_none()
            && target_namespaces.is_empty()
    }
}
