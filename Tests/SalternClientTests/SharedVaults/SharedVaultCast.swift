import Cryptography
import Foundation
import VaultLog

@testable import SalternClient

/// Ada owns a vault, in which Bob and Eve are members.
struct SharedVaultCast {
    let people = SharedVaultPeople()
    let ada: PersonDevice
    let bob: PersonDevice
    let eve: PersonDevice
    let id: SharedVaultID

    init(bob role: SharedRole = .writer, eve other: SharedRole = .writer) async throws {
        ada = try await people.person("ada")
        bob = try await people.person("bob")
        eve = try await people.person("eve")
        let family = try await ada.vault().shared.make(name: "Family", as: "Ada")
        id = family.id
        try await people.join(family, bob.vault(), as: "Bob", role: role)
        try await people.join(family, eve.vault(), as: "Eve", role: other)
        try await sync(ada, bob, eve, ada)
    }

    func sync(_ devices: PersonDevice...) async throws {
        for device in devices { try await device.vault().sync() }
    }

    func shared(_ device: PersonDevice) async throws -> SharedVault { try await device.vault().shared(id) }

    func state(_ device: PersonDevice) async throws -> SharedVaultState {
        guard let state = try await device.vault().vaultState(id) else { throw VaultError.shared(.unknownVault) }
        return state
    }

    /// The entries on the server.
    var entries: [Entry] { people.onServer(id)?.entries ?? [] }

    func member(_ device: PersonDevice) throws -> SalternClient.MemberID {
        guard let member = people.onServer(id)?.member(device.account) else { throw VaultError.shared(.unknownMember) }
        return MemberID(member.id)
    }

    /// Writes a note and sends it.
    @discardableResult
    func write(_ text: String, _ device: PersonDevice, _ item: ItemID = .random()) async throws -> ItemID {
        try await device.notes(id).put(Note(text: text), item)
        try await device.vault().sync()
        return item
    }

    /// The texts that a device shows.
    func texts(_ device: PersonDevice) async throws -> Set<String> { Set(try await device.texts(id).values) }

    // MARK: Lies

    /// Changes the replies to the readings of a device.
    func rewrite(_ device: PersonDevice, _ body: @escaping @Sendable (String, inout [String: Any]) -> Void) {
        device.link.setRewrite { request, reply in
            guard request.method == .get, reply.head.status == 200,
                var members = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any]
            else { return reply }
            body(request.target, &members)
            guard let bytes = try? JSONSerialization.data(withJSONObject: members) else { return reply }
            return HTTPReply(head: reply.head, body: [UInt8](bytes))
        }
    }

    /// Shows a device other entries as the vault's log, and no signed heads of members.
    func show(_ entries: [Entry], to device: PersonDevice) {
        let (name, texts) = (id.description, entries.map { Base64.encodeToString($0.bytes) })
        let head: [String: any Sendable] = [
            "number": entries.count, "hash": entries.last.map { Base64.encodeToString($0.hash.bytes) } ?? "",
        ]
        rewrite(device) { target, reply in
            let path = target.split(separator: "?")
            if path[0] == "/v1/vaults", let listed = reply["vaults"] as? [[String: Any]] {
                reply["vaults"] = listed.map { vault in
                    vault["id"] as? String == name ? vault.merging(["head": head]) { $1 } : vault
                }
            } else if path[0] == "/v1/vaults/\(name)" {
                reply["head"] = head
                reply["members"] = (reply["members"] as? [[String: Any]])?.map { $0.filter { $0.key != "seen" } }
            } else if path[0] == "/v1/vaults/\(name)/log" {
                let after = path.count > 1 ? Int(path[1].split(separator: "=")[1]) ?? 0 : 0
                reply["entries"] = Array(texts.dropFirst(after))
                reply["more"] = false
            }
        }
    }

    /// Replaces the box of a device's member by another text.
    func spoilBox(of device: PersonDevice) {
        let account = device.account
        people.change(id) { vault in
            for member in vault.boxes.keys where vault.holders[member] == account {
                vault.boxes[member] = String(repeating: "A", count: 152)
            }
        }
    }

    /// Shows a device what the server has.
    func beHonest(to device: PersonDevice) { device.link.setRewrite { $1 } }

    /// Seals with the keys of a device, whatever its role is.
    func sealing(_ device: PersonDevice) async throws -> VaultSealing {
        let state = try await state(device)
        return VaultSealing(
            id: id, log: state.log, keys: state.keys, signer: try state.signer, role: .writer,
            evidence: JudgingEvidence(), refused: [], isStopped: false, lists: SealLists([]), names: [:])
    }

    static func item(_ text: String) -> PlainItem {
        PlainItem(body: SecureBytes(copying: Array(#"{"text":"\#(text)"}"#.utf8)))
    }

    /// The server stores a note that a sealing makes.
    @discardableResult
    func forge(_ text: String, _ sealing: VaultSealing, _ item: ItemID = .random()) async throws -> ItemID {
        try await people.put(sealing.seal(Self.item(text), item, collection: "notes", .first), item, id)
        return item
    }

    /// An entry of a device's member after the server's log, which no rule has checked.
    func entry(_ payload: EntryPayload, by device: PersonDevice, at date: Date = Date()) async throws -> Entry {
        let signer = try await state(device).signer
        guard let log = people.onServer(id)?.log else { throw VaultError.shared(.unknownVault) }
        return try EntryWriter.entry(payload, by: signer, after: log, at: EntryTime(date))
    }
}
