//! The client of the registry's protocol. @generated from api.proto.

use super::messages::*;

/// Generated client implementations.
pub mod registry_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    #[derive(Debug, Clone)]
    pub struct RegistryClient<T> {
        inner: tonic::client::Grpc<T>,
    }
    impl<T> RegistryClient<T>
    where
        T: tonic::client::GrpcService<tonic::body::Body>,
        T::Error: Into<StdError>,
        T::ResponseBody: Body<Data = Bytes> + std::marker::Send + 'static,
        <T::ResponseBody as Body>::Error: Into<StdError> + std::marker::Send,
    {
        pub fn new(inner: T) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: T, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        pub fn with_interceptor<F>(
            inner: T,
            interceptor: F,
        ) -> RegistryClient<InterceptedService<T, F>>
        where
            F: tonic::service::Interceptor,
            T::ResponseBody: Default,
            T: tonic::codegen::Service<
                http::Request<tonic::body::Body>,
                Response = http::Response<
                    <T as tonic::client::GrpcService<tonic::body::Body>>::ResponseBody,
                >,
            >,
            <T as tonic::codegen::Service<
                http::Request<tonic::body::Body>,
            >>::Error: Into<StdError> + std::marker::Send + std::marker::Sync,
        {
            RegistryClient::new(InterceptedService::new(inner, interceptor))
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        pub async fn list_packages(
            &mut self,
            request: impl tonic::IntoRequest<super::ListPackageRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::PackageName>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/ListPackages",
            );
            let mut req = request.into_request();
            req.extensions_mut().insert(GrpcMethod::new("api.Registry", "ListPackages"));
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn get_package(
            &mut self,
            request: impl tonic::IntoRequest<super::GetPackageRequest>,
        ) -> std::result::Result<tonic::Response<super::Package>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/api.Registry/GetPackage");
            let mut req = request.into_request();
            req.extensions_mut().insert(GrpcMethod::new("api.Registry", "GetPackage"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_bundle(
            &mut self,
            request: impl tonic::IntoRequest<super::GetBundleRequest>,
        ) -> std::result::Result<tonic::Response<super::Bundle>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/api.Registry/GetBundle");
            let mut req = request.into_request();
            req.extensions_mut().insert(GrpcMethod::new("api.Registry", "GetBundle"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_bundle_for_channel(
            &mut self,
            request: impl tonic::IntoRequest<super::GetBundleInChannelRequest>,
        ) -> std::result::Result<tonic::Response<super::Bundle>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetBundleForChannel",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("api.Registry", "GetBundleForChannel"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_channel_entries_that_replace(
            &mut self,
            request: impl tonic::IntoRequest<super::GetAllReplacementsRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::ChannelEntry>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetChannelEntriesThatReplace",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("api.Registry", "GetChannelEntriesThatReplace"));
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn get_bundle_that_replaces(
            &mut self,
            request: impl tonic::IntoRequest<super::GetReplacementRequest>,
        ) -> std::result::Result<tonic::Response<super::Bundle>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetBundleThatReplaces",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("api.Registry", "GetBundleThatReplaces"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn get_channel_entries_that_provide(
            &mut self,
            request: impl tonic::IntoRequest<super::GetAllProvidersRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::ChannelEntry>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetChannelEntriesThatProvide",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("api.Registry", "GetChannelEntriesThatProvide"));
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn get_latest_channel_entries_that_provide(
            &mut self,
            request: impl tonic::IntoRequest<super::GetLatestProvidersRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::ChannelEntry>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetLatestChannelEntriesThatProvide",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(
                    GrpcMethod::new("api.Registry", "GetLatestChannelEntriesThatProvide"),
                );
            self.inner.server_streaming(req, path, codec).await
        }
        pub async fn get_default_bundle_that_provides(
            &mut self,
            request: impl tonic::IntoRequest<super::GetDefaultProviderRequest>,
        ) -> std::result::Result<tonic::Response<super::Bundle>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/api.Registry/GetDefaultBundleThatProvides",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("api.Registry", "GetDefaultBundleThatProvides"));
            self.inner.unary(req, path, codec).await
        }
        pub async fn list_bundles(
            &mut self,
            request: impl tonic::IntoRequest<super::ListBundlesRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::Bundle>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/api.Registry/ListBundles");
            let mut req = request.into_request();
            req.extensions_mut().insert(GrpcMethod::new("api.Registry", "ListBundles"));
            self.inner.server_streaming(req, path, codec).await
        }
    }
}
