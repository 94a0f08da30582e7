public import Foundation

/// The folder of a vault, the server that it trusts, and the rules of the app.
///
/// Example: "Settings" in docs/app.md.
public struct VaultSettings: Sendable {
    /// The folder of the store; created when there is none.
    public var folder: URL
    /// The transport of requests to the server.
    public var transport: any HTTPTransport
    /// The parameters of key derivation that the app accepts.
    public var stretching: StretchingRule
    /// The name of this device in the list of sessions; nil for none.
    public var deviceName: String?
    /// The store of the device key.
    public var deviceKey: any DeviceKeyStore
    /// Merges two versions; without it both are kept.
    public var merge: MergeRule?
    /// The rules of single collections; see ``merge(_:of:schema:_:)``.
    var collectionMerges: [String: MergeRule] = [:]
    /// The longest wait of opening the vault for another process that uses its store: see ``Vault/lendStore()``. The
    /// default is no wait.
    ///
    /// ```swift
    /// settings.storePatience = .seconds(5)  // in a share extension
    /// ```
    public var storePatience = Duration.zero
    /// The limits of attachments' content on this device.
    public var attachments = AttachmentStorage()
    /// The rule by which requests are repeated, where repeating them is safe.
    public var retries = Retries(attempts: 3)
    /// The limits of a round.
    var limits = SyncLimits()
    /// The longest wait of a sign-out for the server.
    var signOutPatience = Duration.seconds(3)
    /// The wall clock.
    var now: @Sendable () -> Date = { Date() }
    /// Generates ids of items that conflicts and files create.
    var newID: @Sendable () -> ItemID = { .random() }

    /// - Parameter deviceKey: By default a file in the folder that only its owner can read.
    public init(
        folder: URL, transport: any HTTPTransport, stretching: StretchingRule, deviceName: String? = nil,
        deviceKey: (any DeviceKeyStore)? = nil, merge: MergeRule? = nil
    ) {
        self.folder = folder
        self.transport = transport
        self.stretching = stretching
        self.deviceName = deviceName
        self.deviceKey = deviceKey ?? FileKeyStore(path: folder.appending(path: "device.key").path)
        self.merge = merge
    }
}
