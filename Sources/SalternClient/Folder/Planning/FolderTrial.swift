internal import Cryptography
internal import Foundation
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

/// Files that can only be read.
struct ReadOnlyFolders: FolderSystem {
    let inner: any FolderSystem

    func openRoot(_ path: String) -> Descriptor? { inner.openRoot(path) }
    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFolder(name, in: folder) }
    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFile(name, in: folder) }
    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? { inner.entry(name, in: folder) }
    func status(_ descriptor: Descriptor) -> stat? { inner.status(descriptor) }
    func names(in folder: Descriptor) -> [[UInt8]]? { inner.names(in: folder) }

    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        inner.read(file, at: offset, into: buffer)
    }

    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? { nil }
    func makeFolder(_ name: String, in folder: Descriptor) -> Bool { false }
    func removeFolder(_ name: String, in folder: Descriptor) -> Bool { false }
    func removeFile(_ name: String, in folder: Descriptor) {}
    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool { false }
    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool { false }
    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool { false }
    func sync(_ descriptor: Descriptor) -> Bool { false }
    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool { false }
    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool { false }
}
