import Cryptography
import Foundation
import SalternClient
import VaultLog

/// The shared vaults of a server, in memory, for several accounts. It checks entries as the server does, and can lose what
/// was appended last, as a restored database does.
final class MemoryVaults: @unchecked Sendable {
    struct Vault: Sendable {
        var entries: [Entry]
        var log: MembershipLog
        var boxes: [VaultLog.MemberID: String] = [:]
        var previousKeys: [UInt64: String] = [:]
        var lists: [UInt64: String] = [:]
        var seen: [VaultLog.MemberID: [String: any Sendable]] = [:]
        var holders: [VaultLog.MemberID: AccountID]
        var revision: Int64 = 1
        var isRecovering = false
        /// The items, as those of an account.
        let items = MemoryServer()

        func member(_ account: AccountID) -> VaultMember? {
            log.presentMembers.first { holders[$0.id] == account }
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
    }

    typealias Answer = (Int, [String: Any])

    private let lock = NSLock()
    /// Guarded by ``lock``.
    private var state = State()

    /// Reads or changes everything, as an operator or an attacker can.
    func withState<Result: Sendable>(_ body: @Sendable (inout State) -> Result) -> Result {
        lock.withLock { body(&state) }
    }

    /// What an account of this server talks to.
    func transport(_ account: MemoryServer) -> any HTTPTransport { MemoryAccount(account, self) }

    func answer(_ request: HTTPRequest, _ account: AccountID) -> Answer {
        let parts = request.target.split(separator: "?", maxSplits: 1)
        let path = parts[0].split(separator: "/").dropFirst().map(String.init)
        let body = request.body.map { $0.withUnsafeBytes { Data($0) } }
        let members = body.flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] } ?? [:]
        let after = parts.count > 1 ? Int(parts[1].split(separator: "=")[1]) ?? 0 : 0
        let token = request.token.map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } } ?? ""
        return lock.withLock {
            if path[0] == "invitations" {
                return request.method == .get
                    ? Self.open(path[1], token, state) : Self.accept(path[1], members, account, &state)
            }
            if path.count == 1 {
                return request.method == .get ? Self.list(account, state) : Self.create(members, account, &state)
            }
            guard var vault = state.vaults[path[1]], let own = vault.member(account) else {
                return path.last == "claim"
                    ? Self.claim(path[1], members, account, &state) : Self.problem(404, "not_found")
            }
            let answer: Answer
            switch (request.method, path.dropFirst(2).first) {
            case (.get, nil): return (200, Self.description(path[1], vault, own, isWhole: true))
            case (.delete, nil):
                state.vaults[path[1]] = nil
                return (204, [:])
            case (.get, "log"): return Self.log(vault, own, after)
            case (.post, "log"): answer = Self.append(members, &vault, account)
            case (.put, "log"): answer = Self.putBack(members, &vault)
            case (.post, "owner"): answer = Self.append(members, &vault, account)
            case (.post, "recovered"):
                vault.isRecovering = false
                answer = (204, [:])
            case (.post, "invitations"):
                answer = Self.append(members, &vault, account)
                if answer.0 < 300, case .invite(let terms) = vault.entries.last?.payload {
                    state.invitations[terms.id.text] = Invitation(
                        vault: path[1], tokenHash: Self.bytes(members["tokenHash"]),
                        preview: members["preview"] as? String ?? "", keyBox: members["keyBox"] as? String ?? "")
                }
            case (.put, "boxes"):
                for box in members["boxes"] as? [[String: Any]] ?? [] {
                    guard let id = VaultLog.MemberID(text: box["member"] as? String ?? "") else { continue }
                    vault.boxes[id] = box["box"] as? String
                }
                answer = (204, [:])
            case (.delete, "boxes"):
                vault.boxes[own.id] = nil
                answer = (204, [:])
            case (.put, "seen"):
                vault.seen[own.id] = [
                    "number": (members["number"] as? NSNumber)?.intValue ?? 0,
                    "hash": members["hash"] as? String ?? "", "signature": members["signature"] as? String ?? "",
                ]
                answer = (204, [:])
            case (.get, "seals"):
                guard let list = UInt64(path[3]).flatMap({ vault.lists[$0] }) else {
                    return Self.problem(404, "not_found")
                }
                return (200, ["list": list])
            case (.put, "seals"):
                if let number = UInt64(path[3]) { vault.lists[number] = members["list"] as? String }
                answer = (204, [:])
            default: return Self.problem(404, "not_found")
            }
            state.vaults[path[1]] = vault
            return answer
        }
    }

    static func problem(_ status: Int, _ code: String, _ members: [String: Any] = [:]) -> Answer {
        (status, members.merging(["type": "about:blank", "title": code, "status": status, "code": code]) { $1 })
    }

    private static func bytes(_ json: Any?) -> [UInt8] {
        (json as? String).flatMap { try? Base64.decode($0.utf8) } ?? []
    }

    private static func text(_ bytes: [UInt8]) -> String { Base64.encodeToString(bytes) }

    static func reply(_ answer: Answer) throws(TransportError) -> HTTPReply {
        guard let body = try? JSONSerialization.data(withJSONObject: answer.1) else { throw .unacceptableReply }
        return HTTPReply(
            head: HTTPReplyHead(status: answer.0, fields: []), body: answer.0 == 204 ? [] : [UInt8](body))
    }

    // MARK: Vaults

    private static func description(
        _ id: String, _ vault: Vault, _ own: VaultMember, isWhole: Bool
    ) -> [String: Any] {
        var members: [String: Any] = [
            "id": id, "memberId": own.id.text, "role": own.role.map { "\($0)" } ?? "",
            "owner": own.id == vault.log.owner, "revision": vault.revision,
            "head": ["number": Int(vault.log.head.number.value), "hash": text(vault.log.head.hash.bytes)],
            "rotationDue": vault.log.isRotationDue, "boxMissing": vault.boxes[own.id] == nil,
            "usage": ["items": 0, "bytes": 0],
            "limits": ["items": 10_000, "itemBytes": 1 << 20, "bytes": 1 << 28, "members": 32],
        ]
        if vault.isRecovering { members["recoveringUntil"] = "2099-01-01T00:00:00Z" }
        if isWhole {
            members["members"] = vault.log.presentMembers.map { member in
                var seat: [String: Any] = [
                    "id": member.id.text, "departed": vault.holders[member.id] == nil,
                    "boxMissing": vault.boxes[member.id] == nil && vault.log.generations.count > 1,
                ]
                seat["seen"] = vault.seen[member.id]
                return seat
            }
        }
        return members
    }

    private static func list(_ account: AccountID, _ state: State) -> Answer {
        let listed = state.vaults.compactMap { id, vault in
            vault.member(account).map { description(id, vault, $0, isWhole: false) }
        }
        return (200, ["vaults": listed])
    }

    private static func create(_ members: [String: Any], _ account: AccountID, _ state: inout State) -> Answer {
        guard let entry = try? Entry(bytes(members["entry"])), let log = try? MembershipLog(founding: entry) else {
            return problem(422, "malformed_entry")
        }
        if state.vaults[log.vault.text] == nil {
            state.vaults[log.vault.text] = Vault(entries: [entry], log: log, holders: [entry.author: account])
        }
        return (201, ["id": log.vault.text, "number": 1, "hash": text(entry.hash.bytes)])
    }

    // MARK: The log

    private static func log(_ vault: Vault, _ own: VaultMember, _ after: Int) -> Answer {
        let rest = vault.entries.dropFirst(after)
        let page = rest.prefix(3)
        let generation = Int(vault.log.currentGeneration.number.value)
        return (
            200,
            [
                "entries": page.map { text($0.bytes) }, "more": rest.count > page.count,
                "boxes": vault.boxes[own.id].map { [["generation": generation, "box": $0]] } ?? [],
                "previousKeys": vault.previousKeys.map { ["generation": $0.key, "key": $0.value] as [String: Any] },
                "seals": vault.lists.keys.sorted(),
            ]
        )
    }

    private static func append(_ members: [String: Any], _ vault: inout Vault, _ account: AccountID) -> Answer {
        guard let entry = try? Entry(bytes(members["entry"])) else { return problem(422, "malformed_entry") }
        let reply: [String: Any] = ["number": Int(entry.number.value), "hash": text(entry.hash.bytes), "revision": 2]
        if vault.log.hash(at: entry.number) == entry.hash { return (200, reply) }
        if vault.isRecovering { return problem(409, "recovering") }
        guard entry.previous == vault.log.head.hash else {
            return problem(409, "membership_moved", ["head": Int(vault.log.head.number.value), "entries": [String]()])
        }
        do { try vault.log.append(entry) } catch {
            return problem(422, "entry_refused", ["reason": error.rawValue])
        }
        vault.entries.append(entry)
        vault.revision += 1
        if let boxes = members["boxes"] as? [[String: Any]] {
            vault.boxes = [:]
            for box in boxes {
                guard let id = VaultLog.MemberID(text: box["member"] as? String ?? "") else { continue }
                vault.boxes[id] = box["box"] as? String
            }
            vault.previousKeys[vault.log.currentGeneration.number.value] = members["previousKey"] as? String
        }
        if let list = members["list"] as? String { vault.lists[entry.number.value] = list }
        return (200, reply)
    }

    private static func putBack(_ members: [String: Any], _ vault: inout Vault) -> Answer {
        guard vault.isRecovering else { return problem(409, "not_recovering") }
        for text in members["entries"] as? [String] ?? [] {
            guard let entry = try? Entry(bytes(text)) else { return problem(422, "malformed_entry") }
            if vault.log.hash(at: entry.number) == entry.hash { continue }
            do { try vault.log.append(entry) } catch { return problem(409, "membership_moved") }
            vault.entries.append(entry)
        }
        return (
            200,
            ["number": Int(vault.log.head.number.value), "hash": text(vault.log.head.hash.bytes), "revision": 3]
        )
    }

    private static func claim(
        _ id: String, _ members: [String: Any], _ account: AccountID, _ state: inout State
    ) -> Answer {
        guard var vault = state.vaults[id] else { return problem(404, "not_found") }
        if vault.isRecovering { _ = putBack(members, &vault) }
        let head = members["head"] as? [String: Any] ?? [:]
        guard let member = VaultLog.MemberID(text: members["member"] as? String ?? ""), vault.holders[member] == nil,
            let number = EntryNumber((head["number"] as? NSNumber)?.uint64Value ?? 0),
            let hash = EntryHash(bytes(head["hash"])), let signature = VaultSignature(bytes(members["signature"])),
            let claimant = MemberAccountID(account.bytes),
            MemberStatement(.claim(claimant), member, Head(number: number, hash: hash), signature)
                .isValid(in: vault.log)
        else { return problem(422, "claim_refused") }
        vault.holders[member] = account
        state.vaults[id] = vault
        return (200, ["id": id, "memberId": member.text])
    }

    // MARK: Invitations

    private static func open(_ id: String, _ token: String, _ state: State) -> Answer {
        guard let invitation = state.invitations[id], let vault = state.vaults[invitation.vault],
            token.hasPrefix("sli_"), let secret = try? Base64URL.decode(Array(token.dropFirst(4).utf8)),
            SHA256.hash(secret).bytes == invitation.tokenHash,
            vault.log.openInvitations.contains(where: { $0.terms.id.text == id })
        else { return problem(404, "not_found") }
        return (
            200,
            [
                "vault": invitation.vault, "preview": invitation.preview,
                "entries": vault.entries.map { text($0.bytes) },
            ]
        )
    }

    private static func accept(
        _ id: String, _ members: [String: Any], _ account: AccountID, _ state: inout State
    ) -> Answer {
        guard let invitation = state.invitations[id], var vault = state.vaults[invitation.vault],
            SHA256.hash(bytes(members["token"])).bytes == invitation.tokenHash,
            let entry = try? Entry(bytes(members["entry"]))
        else { return problem(404, "not_found") }
        if vault.log.hash(at: entry.number) != entry.hash {
            if vault.member(account) != nil { return problem(409, "already_member") }
            guard entry.previous == vault.log.head.hash else { return problem(409, "membership_moved") }
            do { try vault.log.append(entry) } catch {
                return problem(422, "entry_refused", ["reason": error.rawValue])
            }
            vault.entries.append(entry)
            vault.holders[entry.author] = account
            vault.revision += 1
            state.vaults[invitation.vault] = vault
        }
        return (
            201,
            [
                "vault": invitation.vault, "number": Int(entry.number.value), "hash": text(entry.hash.bytes),
                "keyBox": invitation.keyBox,
            ]
        )
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
        if let reply = try await sendOfItems(request) { return reply }
        return try MemoryVaults.reply(vaults.answer(request, account.account))
    }

    /// Sends a request about the items of a vault of which the account is a member.
    private func sendOfItems(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply? {
        let parts = request.target.split(separator: "/")
        guard parts.count > 3, parts[3].hasPrefix("items") || parts[3].hasPrefix("changes") else { return nil }
        let id = String(parts[2])
        let (items, role) = vaults.withState { [account] state in
            (state.vaults[id]?.items, state.vaults[id]?.member(account.account)?.role)
        }
        guard let items, let role else { return nil }
        if request.method != .get, !role.writes {
            return try MemoryVaults.reply(MemoryVaults.problem(403, "role_too_low"))
        }
        var inner = request
        inner.target = "/v1/" + parts.dropFirst(3).joined(separator: "/")
        return try await items.send(inner)
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream { throw .unreachable }
}
