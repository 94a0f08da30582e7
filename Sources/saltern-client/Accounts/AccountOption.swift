import CommandLineKit
import Foundation
import SalternClient

/// The account of a command: `--account NAME`, or the only one on this device.
struct AccountOption {
    static let help =
        "  --account NAME        the account to use (see `saltern-client status`)"

    private let name: AccountName?
    private var rateLimit: Int?

    init(_ arguments: inout Arguments) throws(UsageError) { name = try arguments.accountName() }

    /// Parses the options of a command that sends or fetches files, including a rate limit.
    init(withRate arguments: inout Arguments) throws(UsageError) {
        try self.init(&arguments, try RateOption.limit(&arguments))
    }

    private init(_ arguments: inout Arguments, _ rateLimit: Int?) throws(UsageError) {
        name = try arguments.accountName()
        self.rateLimit = rateLimit
    }

    /// True when the option was given.
    var isNamed: Bool { name != nil }

    /// Opens the account's vault, without network and without password.
    func open(_ console: Console) async throws -> OpenAccount {
        let profiles = try ProfileStore(console.environment)
        let name = try resolve(profiles)
        let (vault, profile, transport) = try await OpenAccount.waiting(profiles.folder(name)) {
            guard let profile = try profiles.profile(name) else { throw Self.nobody(name) }
            let settings = try profile.settings(folder: profiles.folder(name), rateLimit: rateLimit)
            guard let vault = try await Vault.resume(settings) else { throw Self.nobody(name) }
            // The process that had the store before may have changed the profile since: this is then repeated.
            guard try profiles.profile(name) == profile else { throw VaultError.store(.inUse) }
            return (vault, profile, settings.transport)
        }
        let present = try await profile.naming(vault)
        if present != profile { try profiles.save(present, name) }
        let account = OpenAccount(
            name: name, profile: present, profiles: profiles, vault: vault, transport: transport)
        for folder in PrivateFolder.abandoned(console.environment, of: account.folder) {
            console.notice(
                "an edit was interrupted; the text saved until then is in \(folder): remove it when you no longer need it",
                code: "edit_left")
        }
        return account
    }

    private func resolve(_ profiles: ProfileStore) throws -> AccountName {
        if let name { return name }
        let names = profiles.names()
        guard let only = names.first else { throw Self.nobody(nil) }
        guard names.count == 1 else {
            throw UsageError(
                message:
                    "--account is required, because there are several accounts: \(names.map(\.description).joined(separator: ", "))"
            )
        }
        return only
    }

    private static func nobody(_ name: AccountName?) -> CommandFailure {
        CommandFailure(
            "no account\(name.map { " \($0)" } ?? "") is logged in here: see saltern-client login --help",
            status: ExitStatus.configuration, code: "no_account")
    }
}

/// An account whose store is open. No other process can open it while this exists.
struct OpenAccount {
    let name: AccountName
    let profile: AccountProfile
    let profiles: ProfileStore
    let vault: Vault
    /// The vault's transport, with its rate limit.
    let transport: any HTTPTransport

    /// The folder of its store.
    var folder: URL { profiles.folder(name) }

    /// Stores the pins that the server publishes now.
    func learnPins() async throws {
        let service = try await SalternAPI(transport).describeService()
        try profiles.learn(from: service, over: profile, name)
    }

    /// Removes the files of the account after a sign-out. They stay when another process has logged in since then.
    func removeFiles() async {
        guard let settings = try? profile.settings(folder: folder) else { return profiles.remove(name) }
        do {
            try await Self.waiting(folder) {
                // Commands that wait in the queue open a new store afterwards.
                if try await Vault.resume(settings) == nil { profiles.remove(name) }
            }
        } catch VaultError.store(.inUse) {
            // Another process uses the account.
        } catch is CancellationError {
            // The files have no data of the account.
        } catch {
            profiles.remove(name)
        }
    }

    /// Calls `body`, which needs the store, after the processes that came before. It fails when the queue makes no
    /// progress.
    static func waiting<Result>(_ folder: URL, _ body: () async throws -> Result) async throws -> Result {
        try await StoreTicket.waiting(in: folder, body)
    }
}

/// The rate limit of a command, for all of its requests together, in each direction: `--limit-rate RATE`.
enum RateOption {
    static let help =
        "  --limit-rate RATE     maximum bytes per second, from 16K on (K, M, G: 1,024)"

    /// Returns the limit in bytes a second; nil without the option.
    static func limit(_ arguments: inout Arguments) throws(UsageError) -> Int? {
        guard let text = try arguments.option("--limit-rate") else { return nil }
        guard let rate = rate(text), rate >= CurlTransport.lowestRateLimit else {
            throw UsageError(message: "--limit-rate must be a number of bytes a second from 16K, such as 500K or 2M")
        }
        return rate
    }

    private static func rate(_ text: String) -> Int? {
        let shifts: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        let shift = text.last.flatMap { shifts[Character($0.uppercased())] }
        let digits = shift == nil ? Substring(text) : text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits) else {
            return nil
        }
        let (rate, isTooMuch) = number.multipliedReportingOverflow(by: 1 << (shift ?? 0))
        return isTooMuch ? nil : rate
    }
}

/// The options of a command that requires the password again, because its effect is serious.
struct ProvenCommand {
    let asJSON: Bool
    let account: AccountOption
    private let password: PasswordOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        password = try PasswordOption(&arguments)
        account = try AccountOption(&arguments)
    }

    /// Parses the options with a rate limit.
    init(withRate arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        password = try PasswordOption(&arguments)
        account = try AccountOption(withRate: &arguments)
    }

    func withAccount<Result>(
        _ console: Console, _ body: (OpenAccount, Password) async throws -> Result
    ) async throws -> Result {
        let account = try await account.open(console)
        return try await body(account, try password.read("Password of \(account.profile.userid)"))
    }
}
