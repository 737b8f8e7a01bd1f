//! Macros that declare views: typed accessors that borrow the JSON of an object, or of a part of one.

/// Declares a view: a struct that borrows JSON, and its constructor.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<'a> {
            /// The JSON that the view borrows.
            pub json: &'a serde_json::Value,
        }

        impl<'a> $name<'a> {
            /// Returns a view of this JSON.
            pub const fn new(json: &'a serde_json::Value) -> Self {
                Self { json }
            }
        }
    };
}

/// Declares a view of a whole object, with accessors for its metadata. With `, conditions` also for its `status.conditions`, which is for kinds
/// whose conditions have a type.
macro_rules! object_view {
    ($(#[$doc:meta])* $name:ident $(, $conditions:ident)?) => {
        $crate::api::view::view! {
            $(#[$doc])*
            $name
        }

        impl<'a> $name<'a> {
            /// `metadata.name`
            pub fn name(self) -> &'a str {
                $crate::api::object::name(self.json)
            }

            /// `metadata.namespace`; empty for an object that is cluster-scoped.
            pub fn namespace(self) -> &'a str {
                $crate::api::object::namespace(self.json)
            }

            /// `metadata.uid`
            pub fn uid(self) -> &'a str {
                $crate::api::object::uid(self.json)
            }

            /// The rest of `metadata`.
            pub fn metadata(self) -> $crate::api::metadata::Metadata<'a> {
                $crate::api::metadata::Metadata::new(self.json)
            }

            $(
                /// `status.conditions`
                pub fn $conditions(self) -> $crate::api::conditions::Conditions<'a> {
                    $crate::api::conditions::Conditions::new(self.json)
                }
            )?
        }
    };
}

pub(super) use object_view;
pub(super) use view;
