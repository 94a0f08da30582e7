import Cryptography
import Foundation

@testable import SalternClient

/// All bytes of a store's folder, as a thief reads them who has the device key, too.
struct StoreFiles {
    private let contents: [Data]
    /// The device key as it is now, and every key that it opens.
    private var keys: [SecureBytes] = []

    private static let secrets: [StoreFact] = [.token, .deviceToken, .openKeys, .openKeyring, .unconfirmedPassword]

    init(folder: String, key: SecureBytes?) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        contents = try names.filter { $0 != "device.key" }.map {
            try Data(contentsOf: URL(filePath: folder + "/" + $0))
        }
        keys = key.map { [$0] } ?? []
        // A device key can open the next one, which can open another one.
        var index = 0
        while index < keys.count, index < 100 {
            for next in opened(.nextDeviceKey, keys[index]) where next.count == 32 && !keys.contains(next) {
                keys.append(next)
            }
            index += 1
        }
    }

    /// Whether the bytes are anywhere, in the clear or in something that the device key opens.
    func reveal(_ secret: SecureBytes) -> Bool {
        let bytes = secret.withUnsafeBytes { Data($0) }
        if contents.contains(where: { $0.range(of: bytes) != nil }) { return true }
        return revealed.contains { opened in opened.withUnsafeBytes { Data($0).range(of: bytes) != nil } }
    }

    /// Everything that the device key opens.
    private var revealed: [SecureBytes] { keys.flatMap { key in Self.secrets.flatMap { opened($0, key) } } }

    /// SQLite writes a fact's value right behind its name.
    private func opened(_ fact: StoreFact, _ key: SecureBytes) -> [SecureBytes] {
        let name = Data(fact.rawValue.utf8)
        return contents.flatMap { content -> [SecureBytes] in
            var found: [SecureBytes] = []
            var start = content.startIndex
            while let match = content[start...].range(of: name) {
                start = match.upperBound
                let value = [UInt8](content[start...].prefix(2_000))
                for count in Self.lengths(before: match.lowerBound, in: content) where count <= value.count {
                    if let secret = try? DeviceSeal(key: key).open(Array(value.prefix(count)), fact) {
                        found.append(secret)
                    }
                }
            }
            return found
        }
    }

    /// The lengths that the end of the record's header can say: a blob of n bytes has the type 12 + 2n, as a number of one or
    /// two bytes of seven bits (SQLite file format, section 2.1).
    private static func lengths(before name: Int, in content: Data) -> [Int] {
        guard name >= 2 else { return [] }
        let (high, low) = (Int(content[name - 2]), Int(content[name - 1]))
        return [low, (high & 0x7f) << 7 | low].filter { $0 >= 12 && $0.isMultiple(of: 2) }.map { ($0 - 12) / 2 }
    }
}

extension Vault {
    /// Every secret that this device has now.
    func allSecrets() throws -> KnownSecrets {
        let opened = try open
        let keyring = opened.sealer.keyring
        return KnownSecrets(
            token: opened.token.text, deviceToken: try secret(.deviceToken), unlockKey: opened.password.unlockKey,
            dataKeys: keyring.dataKeys.map(\.bytes), deviceKey: try settings.deviceKey.load())
    }
}

/// Secrets of a device at one time.
struct KnownSecrets {
    let token: SecureBytes
    let deviceToken: SecureBytes?
    let unlockKey: SecureBytes
    let dataKeys: [SecureBytes]
    let deviceKey: SecureBytes?
}
