#if canImport(SwiftUI)
    import Foundation
    import SalternClient

    /// The constants of an app about its server.
    enum Server {
        static let address = "https://notes.example.org"
        /// Prints of the server's present key and of the one that follows it.
        static let pins = ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]

        static func settings() throws -> VaultSettings {
            VaultSettings(
                folder: .applicationSupportDirectory.appending(path: "notes"),
                transport: try URLSessionTransport(PinnedServer(base: address, pins: pins)),
                stretching: StretchingRule(saltPrefix: "org.example.notes:", host: "notes.example.org"),
                deviceKey: KeychainDeviceKeyStore(service: "org.example.notes", account: "notes"))
        }
    }
#endif
