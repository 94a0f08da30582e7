public import Cryptography
internal import Foundation

/// A store for the device key, which seals secrets that are used without the password: session token, data keys.
public protocol DeviceKeyStore: Sendable {
    /// Returns the key; nil when there is none. A vault without its key is locked, and its password opens it.
    func load() throws -> SecureBytes?
    /// Replaces the key. The previous one must then be unreadable: a vault replaces its key to delete secrets.
    func save(_ key: SecureBytes) throws
    /// Removes the key, if there is one.
    func remove() throws
}

/// A key store in a file that only its owner can read, for systems without a key store.
///
/// ```swift
/// settings.deviceKey = FileKeyStore(path: "/var/lib/notes/device.key")  // apart from the store
/// ```
public struct FileKeyStore: DeviceKeyStore {
    private let path: String

    /// Creates a key store with this file, which is created at the first use.
    public init(path: String) { self.path = path }

    public func load() throws -> SecureBytes? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StoreError.unusable
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StoreError.unusable }
        guard status.st_mode & 0o077 == 0 else {
            throw StoreError.exposedFile(path: path, mode: UInt32(status.st_mode) & 0o7777)
        }
        // A damaged file has no valid key.
        guard status.st_size == 32 else { return nil }
        return try SecureBytes(count: 32) { buffer throws in
            guard read(descriptor, buffer.baseAddress, buffer.count) == buffer.count else { throw StoreError.damaged }
        }
    }

    public func save(_ key: SecureBytes) throws {
        // The file has another name first, so that a crash leaves the old or the new file.
        let temporary = path + ".new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw errno == EROFS ? StoreError.readOnly : .unusable }
        let isWritten = key.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) == $0.count }
        let isSynced = fsync(descriptor) == 0
        close(descriptor)
        guard isWritten, isSynced, rename(temporary, path) == 0 else {
            unlink(temporary)
            throw StoreError.unusable
        }
        try syncFolder()
    }

    /// Makes a new or removed name durable. Otherwise a power failure could restore the previous key.
    private func syncFolder() throws {
        guard FileFolder.sync(of: path) else { throw StoreError.unusable }
    }

    public func remove() throws {
        for path in [path + ".new", path] {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw errno == EROFS ? StoreError.readOnly : .unusable
            }
        }
        try syncFolder()
    }
}

/// Seals secret facts with the device key.
struct DeviceSeal: Sendable {
    let key: SecureBytes

    func seal(_ secret: some ByteSource, _ fact: StoreFact) throws -> [UInt8] {
        do { return try AESGCM.seal(secret, using: key, authenticating: Self.name(fact)) } catch {
            throw StoreError.unusable
        }
    }

    func open(_ sealed: [UInt8], _ fact: StoreFact) throws -> SecureBytes {
        do { return try AESGCM.open(sealed, using: key, authenticating: Self.name(fact)) } catch {
            throw StoreError.damaged
        }
    }

    private static func name(_ fact: StoreFact) -> String.UTF8View { "saltern device \(fact.rawValue)".utf8 }
}
