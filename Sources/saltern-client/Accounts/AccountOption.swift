import CommandLineKit
import Foundation
import SalternClient

/// Which account a command is about: `--account NAME`, or the only one that there is.
struct AccountOption {
    static let help =
        "  --account NAME        which account, where there are several (saltern-client status lists them)"

    private let name: AccountName?

    init(_ arguments: inout Arguments) throws(UsageError) { name = try arguments.accountName() }

    /// Whether it was said.
    var isNamed: Bool { name != nil }

    /// Opens the account's vault, without network and without password.
    func open(_ console: Console) async throws -> OpenAccount {
        let profiles = try ProfileStore(console.environment)
        let name = try resolve(profiles)
        guard let profile = try profiles.profile(name) else { throw Self.nobody(name) }
        let settings = try profile.settings(folder: profiles.folder(name))
        guard let vault = try await OpenAccount.waiting({ try await Vault.resume(settings) }) else {
            throw Self.nobody(name)
        }
        let present = try await profile.naming(vault)
        if present != profile { try profiles.save(present, name) }
        let account = OpenAccount(name: name, profile: present, profiles: profiles, vault: vault)
        for folder in PrivateFolder.abandoned(console.environment, of: account.folder) {
            console.notice(
                "an edit was cut off; what was saved by then is in \(folder): remove it when you have what you need",
                code: "edit_left")
        }
        return account
    }

    private func resolve(_ profiles: ProfileStore) throws -> AccountName {
        if let name { return name }
        let names = profiles.names()
        guard let only = names.first else { throw Self.nobody(nil) }
        guard names.count == 1 else {
            throw UsageError(message: "--account has to say which: \(names.map(\.description).joined(separator: ", "))")
        }
        return only
    }

    private static func nobody(_ name: AccountName?) -> CommandFailure {
        CommandFailure(
            "nobody is logged in here\(name.map { " as \($0)" } ?? ""): see saltern-client login --help",
            status: ExitStatus.configuration, code: "no_account")
    }
}

/// An account whose store is open. Nobody else can open it while this lives.
struct OpenAccount {
    let name: AccountName
    let profile: AccountProfile
    let profiles: ProfileStore
    let vault: Vault

    /// Where its store is.
    var folder: URL { profiles.folder(name) }

    /// Remembers the pins that the server publishes now.
    func learnPins() async throws {
        let next = profile.learning(from: try await SalternAPI(profile.transport()).describeService())
        if next != profile { try profiles.save(next, name) }
    }

    /// Does what needs the store, waiting a while for another process to be done with it.
    static func waiting<Result>(_ body: () async throws -> Result) async throws -> Result {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            do {
                return try await body()
            } catch VaultError.store(.inUse) where ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }
}
