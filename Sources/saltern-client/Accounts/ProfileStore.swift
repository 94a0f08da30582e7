import CommandLineKit
import Foundation
import SalternClient

/// The accounts of this device: a profile each under `XDG_CONFIG_HOME`, and a folder each under `XDG_DATA_HOME`.
struct ProfileStore {
    private let profiles: URL
    private let folders: URL

    init(_ environment: [String: String]) throws(CommandFailure) {
        profiles = try Self.base("XDG_CONFIG_HOME", ".config", environment).appending(path: "accounts")
        folders = try Self.data(environment).appending(path: "accounts")
    }

    /// Returns the folder of all data of the command except its configuration.
    static func data(_ environment: [String: String]) throws(CommandFailure) -> URL {
        try base("XDG_DATA_HOME", ".local/share", environment)
    }

    /// Returns the folder of a variable. A relative path in it is ignored (XDG Base Directory Specification).
    private static func base(
        _ variable: String, _ fallback: String, _ environment: [String: String]
    ) throws(CommandFailure) -> URL {
        if let path = environment[variable], path.hasPrefix("/") {
            return URL(filePath: path, directoryHint: .isDirectory).appending(path: "saltern-client")
        }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw CommandFailure(
                "neither HOME nor \(variable) is an absolute path", status: ExitStatus.configuration,
                code: "configuration")
        }
        return URL(filePath: home, directoryHint: .isDirectory)
            .appending(path: fallback).appending(path: "saltern-client")
    }

    /// Returns the names of all accounts, sorted.
    func names() -> [AccountName] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: profiles.path)) ?? []
        return files.filter { $0.hasSuffix(Self.suffix) }
            .compactMap { AccountName(component: $0.dropLast(Self.suffix.count)) }
            .sorted { $0.description < $1.description }
    }

    /// Reads the profile of an account.
    /// - Returns: nil when there is no such account.
    /// - Throws: ``CommandFailure`` when the profile cannot be read. Without it, a server would be contacted without
    ///   its pins, and could choose another salt prefix.
    func profile(_ name: AccountName) throws(CommandFailure) -> AccountProfile? {
        let data: Data
        do {
            data = try Data(contentsOf: file(name))
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        } catch {
            throw CommandFailure(
                "cannot read \(file(name).path)", status: ExitStatus.configuration, code: "configuration")
        }
        guard let profile = try? JSONDecoder().decode(AccountProfile.self, from: data) else {
            throw CommandFailure(
                "\(file(name).path) is damaged", status: ExitStatus.configuration, code: "configuration")
        }
        return profile
    }

    func save(_ profile: AccountProfile, _ name: AccountName) throws(CommandFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            try FileManager.default.createDirectory(
                at: profiles, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try PrivateFile.replace(file(name), with: encoder.encode(profile))
        } catch {
            throw CommandFailure("cannot write \(file(name).path)", status: ExitStatus.store, code: "store_unusable")
        }
    }

    /// Stores the pins that a server has published over a connection by `used`, the account's profile at that time.
    /// Pins of another server, or of a removed account, are ignored.
    func learn(
        from service: ServiceDescription, over used: AccountProfile, _ name: AccountName
    ) throws(CommandFailure) {
        // Another process may have changed the profile since.
        guard let present = try profile(name), present.server == used.server, present.pins == used.pins else { return }
        let next = present.learning(from: service)
        if next != present { try save(next, name) }
    }

    /// Returns the folder of the account's store.
    func folder(_ name: AccountName) -> URL { folders.appending(path: name.component, directoryHint: .isDirectory) }

    /// Removes the account from this device.
    func remove(_ name: AccountName) {
        try? FileManager.default.removeItem(at: file(name))
        try? FileManager.default.removeItem(at: folder(name))
    }

    private static let suffix = ".json"

    private func file(_ name: AccountName) -> URL { profiles.appending(path: name.component + Self.suffix) }
}
