//! Enums of words with a fixed meaning in fields of objects, such as phases.

/// Declares an enum of words. The first is the default; an unknown word is read as `Other`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $(#[$first_doc:meta])* $first:ident = $first_word:literal, $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[$first_doc])*
            #[doc = concat!("`", $first_word, "`")]
            #[default]
            $first,
            $($(#[$variant_doc])* #[doc = concat!("`", $word, "`")] $variant,)*
            /// An unknown word.
            Other,
        }

        impl $name {
            /// Returns the word as in objects; empty for `Other`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                    Self::Other => "",
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $first_word => Self::$first,
                    $($word => Self::$variant,)*
                    _ => Self::Other,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for serde_json::Value {
            fn from(word: $name) -> Self {
                word.as_str().into()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(super) use words;
