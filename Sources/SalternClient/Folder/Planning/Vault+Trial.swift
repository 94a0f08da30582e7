internal import Cryptography
internal import Synchronization

extension Vault {
    /// Returns a copy of this vault in memory. It reads from the server, and only changes itself.
    /// - Throws: ``VaultError/locked``.
    func trial() async throws(VaultError) -> Vault {
        _ = try open
        var settings = settings
        settings.transport = ReadingTransport(inner: settings.transport)
        let device = settings.deviceKey
        settings.deviceKey = TrialKeyStore(try stored { try device.load() })
        // No other reference to the copy exists.
        nonisolated(unsafe) let copy = try stored { try Store(copyOf: store) }
        let vault = Vault(settings, copy)
        guard try await vault.resume(), await vault.isOpen else { throw .locked }
        return vault
    }

    private var isOpen: Bool { session.opened != nil }
}

/// Rejects requests that could change data on the server.
private struct ReadingTransport: HTTPTransport {
    let inner: any HTTPTransport

    var host: String? { inner.host }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        try check(request)
        return try await inner.send(request)
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        try check(request)
        return try await inner.stream(request)
    }

    private func check(_ request: HTTPRequest) throws(TransportError) {
        guard request.method == .get || request.method == .head else { throw .configuration(.request) }
    }
}

/// The device key in memory: a later keyring replaces it, and not the device's own.
private final class TrialKeyStore: DeviceKeyStore {
    private let key: Mutex<SecureBytes?>

    init(_ key: SecureBytes?) { self.key = Mutex(key) }

    func load() -> SecureBytes? { key.withLock { $0 } }
    func save(_ key: SecureBytes) { self.key.withLock { $0 = key } }
    func remove() { key.withLock { $0 = nil } }
}
