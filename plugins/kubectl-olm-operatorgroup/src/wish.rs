//! The arguments by which a group is compiled.

use olm_shell::operatorgroup::compile::{InstallMode, Wanted};
use olm_shell::operatorgroup::operator::Operator;

/// The group, and the operator that is to be in it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Wish {
    /// Name of the OperatorGroup [default: that of the package, else of the namespace]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the operator, and so of the group [default: the context's namespace]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// Which namespaces the operator watches: OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces
    /// [default: what the namespaces mean; without any, OwnNamespace]
    #[arg(long, value_name = "MODE")]
    install_mode: Option<InstallMode>,
    /// The namespaces to watch; '' stands for all
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    target_namespaces: Vec<String>,
    /// Check that the operator of this bundle supports them: a directory, an image, an OCI layout (oci:PATH)
    #[arg(long, value_name = "REF", conflicts_with = "package")]
    bundle: Option<String>,
    /// Check that this package's operator supports them; with a range such as '>=1.2.0 <2.0.0' or a version, its newest in there
    #[arg(long, value_name = "PACKAGE[@RANGE]")]
    package: Option<String>,
    /// ServiceAccount with whose rights the operator is installed
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
}

impl Wish {
    /// As the shell takes it.
    pub(crate) fn wanted(self) -> Wanted {
        let Self { name, namespace, install_mode, target_namespaces, bundle, package, service_account } = self;
        Wanted {
            name,
            namespace,
            mode: install_mode,
            targets: target_namespaces,
            operator: bundle.map(Operator::Bundle).or_else(|| package.map(Operator::Package)),
            service_account,
        }
    }

    /// Does it ask for anything?
    pub(crate) fn is_empty(&self) -> bool {
        let Self { name, install_mode, target_namespaces, bundle, package, service_account, namespace: _ } = self;
        [name, bundle, package, service_account].iter().all(|text| text.is_none())
            && install_mode.is_none()
            && target_namespaces.is_empty()
    }
}
