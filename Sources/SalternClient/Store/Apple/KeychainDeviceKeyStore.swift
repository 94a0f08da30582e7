public import Cryptography
internal import Foundation
internal import Security

/// The device's key in the Keychain. It is readable after the first unlock of the device since its start. It never
/// leaves the device, and backups do not contain it.
///
/// On macOS this is the data protection keychain, which is only available to signed apps.
///
/// Example: "iOS and macOS" in docs/kit.md.
public struct KeychainDeviceKeyStore: DeviceKeyStore {
    private let service: String
    private let account: String

    /// Creates a key store.
    /// - Parameters:
    ///   - service: The name of the app, such as its bundle's identifier.
    ///   - account: The name of the vault, for an app with several.
    public init(service: String, account: String) {
        self.service = service
        self.account = account
    }

    public func load() throws -> SecureBytes? {
        var query = item
        query[kSecReturnData] = true
        query[kSecMatchLimit] = kSecMatchLimitOne
        var found: CFTypeRef?
        switch SecItemCopyMatching(query as CFDictionary, &found) {
        case errSecSuccess:
            // A key of another length is invalid.
            guard var key = found as? Data, key.count == 32 else { return nil }
            defer { key.resetBytes(in: key.indices) }
            return key.withUnsafeBytes { SecureBytes(copying: $0) }
        case errSecItemNotFound: return nil
        default: throw StoreError.unusable
        }
    }

    public func save(_ key: SecureBytes) throws {
        var data = key.withUnsafeBytes { Data($0) }
        defer { data.resetBytes(in: data.indices) }
        let value: [CFString: Any] = [
            kSecValueData: data, kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        var status = SecItemUpdate(item as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound {
            status = SecItemAdd(item.merging(value) { _, new in new } as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw StoreError.unusable }
    }

    public func remove() throws {
        let status = SecItemDelete(item as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw StoreError.unusable }
    }

    private var item: [CFString: Any] {
        [
            kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: account,
            kSecUseDataProtectionKeychain: true,
        ]
    }
}
