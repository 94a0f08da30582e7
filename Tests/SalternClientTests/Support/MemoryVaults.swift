import Cryptography
import Foundation
import SalternClient
import VaultLog

/// The shared vaults of a server, in memory, for several accounts. It rejects the requests that the server rejects, and
/// a test can restore it from a backup, change its state as an attacker can, or limit its rates.
final class MemoryVaults: @unchecked Sendable {
    struct Vault: Sendable {
        var entries: [Entry]
        var log: MembershipLog
        /// The boxes of the present generation.
        var boxes: [VaultLog.MemberID: String] = [:]
        var previousKeys: [UInt64: String] = [:]
        var lists: [UInt64: String] = [:]
        var seen: [VaultLog.MemberID: [String: any Sendable]] = [:]
        var holders: [VaultLog.MemberID: AccountID]
        /// The number of the head at the beginning of the recovery; nil unless the vault recovers. Later entries are
        /// provisional.
        var settled: Int?
        /// The items, as those of an account. Entries of the log take revisions, too.
        let items: MemoryServer

        var isRecovering: Bool { settled != nil }

        /// The present member of an account. A join that was put back counts after the recovery.
        func member(_ account: AccountID) -> VaultMember? {
            log.presentMembers.first { holders[$0.id] == account && !isProvisional($0) }
        }

        private func isProvisional(_ member: VaultMember) -> Bool {
            settled.map { Int(member.joined.number.value) > $0 } ?? false
        }

        /// The role of a member. What provisional entries add does not count.
        func role(of member: VaultMember) -> Role? {
            guard let settled, let number = EntryNumber(UInt64(settled)), let earlier = member.role(at: number) else {
                return member.role
            }
            return member.role.map { min($0, earlier) }
        }
    }

    struct Invitation: Sendable {
        var vault: String
        var tokenHash: [UInt8]
        var preview: String
        var keyBox: String
    }

    struct State: Sendable {
        var vaults: [String: Vault] = [:]
        var invitations: [String: Invitation] = [:]
        /// The accepted requests that change something, by a short name.
        var changes: [String: Int] = [:]
        /// The requests that were rejected, by their code.
        var refusals: [String: Int] = [:]
        /// The difference of the server's clock from that of the machine.
        var clockOffset: TimeInterval = 0
        /// The number of rotations that an author can append from now on; nil without a limit.
        var rotations: Int?
    }

    /// The database at one time.
    struct Backup: Sendable {
        fileprivate let state: State
        fileprivate let items: [String: MemoryServer.Backup]
        fileprivate let accounts: [AccountID: MemoryServer.Backup]
    }

    typealias Answer = (Int, [String: Any])

    private let lock = NSLock()
    /// Guarded by ``lock``.
    private var state = State()
    /// Guarded by ``lock``.
    private var accounts: [AccountID: MemoryServer] = [:]

    /// Reads or changes everything, as an operator or an attacker can.
    func withState<Result: Sendable>(_ body: @Sendable (inout State) -> Result) -> Result {
        lock.withLock { body(&state) }
    }

    /// What an account of this server talks to.
    func transport(_ account: MemoryServer) -> any HTTPTransport {
        lock.withLock { accounts[account.account] = account }
        return MemoryAccount(account, self)
    }

    // MARK: Backups

    func backUp() -> Backup {
        lock.withLock {
            Backup(state: state, items: state.vaults.mapValues { $0.items.backUp() }, accounts: backUpAccounts())
        }
    }

    private func backUpAccounts() -> [AccountID: MemoryServer.Backup] { accounts.mapValues { $0.backUp() } }

    /// Restores the database: the accounts' items, the vaults' items, the logs and the keys. The base of the revisions
    /// moves, the invitations are closed, and all vaults recover.
    func restore(_ backup: Backup) {
        lock.withLock {
            let former = state
            state = backup.state
            (state.changes, state.refusals) = (former.changes, former.refusals)
            (state.clockOffset, state.rotations) = (former.clockOffset, former.rotations)
            state.invitations = [:]
            for (id, vault) in state.vaults {
                if let items = backup.items[id] { vault.items.restore(items) }
                state.vaults[id]?.settled = vault.settled ?? vault.entries.count
            }
            for (id, account) in backup.accounts { accounts[id]?.restore(account) }
        }
    }

    // MARK: Requests

    /// Carries out a request about vaults or invitations.
    func answer(_ request: HTTPRequest, _ account: AccountID) -> Answer {
        let parts = request.target.split(separator: "?", maxSplits: 1)
        let path = parts[0].split(separator: "/").dropFirst().map(String.init)
        let members = Self.json(request.body)
        let after = parts.count > 1 ? Int(parts[1].split(separator: "=")[1]) ?? 0 : 0
        let token = request.token.map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } } ?? ""
        return lock.withLock {
            let answer =
                if path[0] == "invitations" {
                    request.method == .get
                        ? Self.open(path[1], token, state) : Self.accept(path[1], members, account, &state)
                } else if path.count == 1 {
                    request.method == .get ? Self.list(account, state) : Self.create(members, account, &state)
                } else {
                    Self.answer(request.method, path, members, after, account, &state)
                }
            count(answer, request, path)
            return answer
        }
    }

    /// Carries out a request about the items of a vault.
    func answerAboutItems(_ request: HTTPRequest, _ account: AccountID) throws(TransportError) -> HTTPReply {
        let parts = request.target.split(separator: "/")
        lock.lock()
        defer { lock.unlock() }
        guard let vault = state.vaults[String(parts[2])], let own = vault.member(account) else {
            return try Self.reply(Self.problem(404, "not_found"))
        }
        if request.method != .get, let problem = Self.refusal(of: request, vault, own) {
            count(problem, request, ["vaults", "", "items"])
            return try Self.reply(problem)
        }
        var inner = request
        inner.target = "/v1/" + parts.dropFirst(3).joined(separator: "/")
        return try vault.items.reply(to: inner)
    }

    private func count(_ answer: Answer, _ request: HTTPRequest, _ path: [String]) {
        if answer.0 >= 400, let code = answer.1["code"] as? String {
            state.refusals[code, default: 0] += 1
        } else if request.method != .get {
            state.changes["\(request.method.rawValue) \(path.dropFirst(2).first ?? path[0])", default: 0] += 1
        }
    }

    private static func answer(
        _ method: HTTPRequest.Method, _ path: [String], _ members: [String: Any], _ after: Int, _ account: AccountID,
        _ state: inout State
    ) -> Answer {
        guard var vault = state.vaults[path[1]] else { return problem(404, "not_found") }
        guard let own = vault.member(account) else {
            if path.last == "claim" { return claim(path[1], members, account, &state) }
            // The author has left by the entry, or was removed since.
            guard method == .post, path.last == "log", let entry = try? Entry(bytes(members["entry"])),
                vault.log.hash(at: entry.number) == entry.hash, vault.holders[entry.author] == account
            else { return problem(404, "not_found") }
            return (200, ["number": Int(entry.number.value), "hash": text(entry.hash.bytes)])
        }
        let answer: Answer
        switch (method, path.dropFirst(2).first) {
        case (.get, nil): return (200, description(path[1], vault, own, isWhole: true))
        case (.delete, nil):
            guard own.id == vault.log.owner else { return problem(403, "role_too_low") }
            if vault.isRecovering { return problem(409, "recovering") }
            state.vaults[path[1]] = nil
            state.invitations = state.invitations.filter { $1.vault != path[1] }
            return (204, [:])
        case (.get, "log"): return log(vault, own, after)
        case (.post, "log"):
            answer = append(
                members, &vault, own, &state, [.role, .leave, .revoke, .rotate, .remove, .seal, .offer, .rekey])
        case (.put, "log"): answer = putBack(members, &vault, own)
        case (.post, "owner"): answer = append(members, &vault, own, &state, [.accept])
        case (.post, "claim"): return claim(path[1], members, account, &state)
        case (.post, "recovered"): answer = endRecovery(members, &vault, own)
        case (.post, "invitations"):
            answer = append(members, &vault, own, &state, [.invite])
            if answer.0 < 300, case .invite(let terms) = vault.entries.last?.payload {
                state.invitations[terms.id.text] = Invitation(
                    vault: path[1], tokenHash: bytes(members["tokenHash"]),
                    preview: members["preview"] as? String ?? "", keyBox: members["keyBox"] as? String ?? "")
            }
        case (.put, "boxes"): answer = putBoxes(members, &vault, own)
        case (.delete, "boxes"):
            vault.boxes[own.id] = nil
            answer = (204, [:])
        case (.put, "seen"): answer = putSeen(members, &vault, own)
        case (.get, "seals"):
            guard let list = UInt64(path[3]).flatMap({ vault.lists[$0] }) else { return problem(404, "not_found") }
            return (200, ["list": list])
        case (.put, "seals"): answer = putList(path[3], members, &vault)
        default: return problem(404, "not_found")
        }
        state.vaults[path[1]] = vault
        return answer
    }

    // MARK: Replies

    static func problem(_ status: Int, _ code: String, _ members: [String: Any] = [:]) -> Answer {
        (status, members.merging(["type": "about:blank", "title": code, "status": status, "code": code]) { $1 })
    }

    static func reply(
        _ answer: Answer, _ fields: [(name: String, value: String)] = []
    ) throws(TransportError) -> HTTPReply {
        guard let body = try? JSONSerialization.data(withJSONObject: answer.1) else { throw .unacceptableReply }
        return HTTPReply(
            head: HTTPReplyHead(status: answer.0, fields: fields), body: answer.0 == 204 ? [] : [UInt8](body))
    }

    /// The server's time, if its clock is another one than the machine's.
    private var dateFields: [(name: String, value: String)] {
        let offset = withState { $0.clockOffset }
        guard offset != 0 else { return [] }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return [(name: "Date", value: format.string(from: Date().addingTimeInterval(offset)))]
    }

    /// Returns the reply to a request about vaults or invitations.
    func reply(to request: HTTPRequest, _ account: AccountID) throws(TransportError) -> HTTPReply {
        try Self.reply(answer(request, account), dateFields)
    }

    static func bytes(_ json: Any?) -> [UInt8] { (json as? String).flatMap { try? Base64.decode($0.utf8) } ?? [] }

    static func text(_ bytes: [UInt8]) -> String { Base64.encodeToString(bytes) }

    static func json(_ body: SecureBytes?) -> [String: Any] {
        body.map { $0.withUnsafeBytes { Data($0) } }
            .flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] } ?? [:]
    }
}

/// One account of a server with shared vaults.
private struct MemoryAccount: HTTPTransport {
    let account: MemoryServer
    let vaults: MemoryVaults

    init(_ account: MemoryServer, _ vaults: MemoryVaults) {
        self.account = account
        self.vaults = vaults
    }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        guard request.target.hasPrefix("/v1/vaults") || request.target.hasPrefix("/v1/invitations") else {
            return try await account.send(request)
        }
        let parts = request.target.split(separator: "/")
        if parts.count > 3, parts[3].hasPrefix("items") || parts[3].hasPrefix("changes") {
            return try vaults.answerAboutItems(request, account.account)
        }
        return try vaults.reply(to: request, account.account)
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream { throw .unreachable }
}
