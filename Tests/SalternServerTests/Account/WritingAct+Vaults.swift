import Cryptography
import HTTPCore
import SalternTesting
import VaultLog

/// A vault with its owner, a manager and an open invitation.
struct WrittenVault: Sendable {
    let scene: VaultScene
    let manager: VaultScene.Sharer
    let invitation: InvitationSecrets
    /// The path of an item.
    let item: String

    init(_ app: TestApplication, _ account: TestAccount) async throws {
        var scene = try await VaultScene(app, account)
        manager = try await scene.join(as: .manager)
        invitation = try await scene.invite(as: .writer, uses: 8)
        self.scene = scene
        item = "\(scene.path)/items/\(Fixtures.uuid())"
        _ = try await account.client.put(item, scene.item(), scene.fields(["If-None-Match": "*"]))
    }

    /// Sends an entry with new keys.
    fileprivate func rotate(
        removing member: VaultScene.Sharer? = nil
    ) async throws -> TestResponse {
        var scene = scene
        let removed = member.map { [$0.member] } ?? []
        let (generation, keys) = try scene.newKeys(without: removed)
        return try await scene.append(removed.isEmpty ? .rotate(generation) : .remove(generation, removed), keys)
    }

    fileprivate func append(_ payload: EntryPayload, by sharer: VaultScene.Sharer? = nil) async throws -> TestResponse {
        var scene = scene
        return try await scene.append(payload, by: sharer)
    }
}

extension WritingAct {
    /// The routes of vaults. In pairs, most of their entries meet another head.
    static let vaults: [WritingAct] = [
        route("POST vault") { written, _ in
            let entry = try EntryWriter.found(
                by: .random(), named: MemberName("Ada") ?? { throw UnexpectedReply(description: "name") }(),
                try .generate(), .random(), at: try VaultScene.time(written.app))
            return try await written.client.post("/v1/vaults", VaultScene.body(entry))
        },
        route("PUT vault item", { try await $0.vault() }) { written, vault, _ in
            try await written.client.put(vault.item, vault.scene.item(), vault.scene.fields(["If-Match": "*"]))
        },
        route("DELETE vault item", { try await $0.vault() }) { written, vault, _ in
            try await vault.manager.client.delete(vault.item, vault.scene.fields(["If-Match": "*"]))
        },
        route("vault batch", { try await $0.vault() }) { written, vault, _ in
            try await vault.manager.client.post(
                "\(vault.scene.path)/items/batch",
                ["operations": [BatchTests.put(Fixtures.uuid(), 0, vault.scene.item())]], vault.scene.fields())
        },
        route("invite", { try await $0.vault() }) { written, vault, _ in
            let made = try vault.scene.makeInvitation(as: .writer)
            return try await written.client.post("\(vault.scene.path)/invitations", made.body)
        },
        route("accept invitation", { ($0.app, try await $0.vault()) }) { _, need, _ in
            let joiner = try VaultScene.Sharer(try await need.0.register())
            let body = try need.1.scene.joining(need.1.invitation, joiner).body
            return try await joiner.client.post("/v1/invitations/\(need.1.invitation.id.text)/acceptance", body)
        },
        route("role", { try await $0.vault() }) { _, vault, _ in
            try await vault.append(.role(vault.manager.member, .reader))
        },
        route("rotate", { try await $0.vault() }) { _, vault, _ in try await vault.rotate() },
        route("remove", { try await $0.vault() }) { _, vault, _ in try await vault.rotate(removing: vault.manager) },
        route("leave", { try await $0.vault() }) { _, vault, _ in try await vault.append(.leave, by: vault.manager) },
        route("seen", { try await $0.vault() }) { _, vault, _ in
            let head = vault.scene.log.head
            let signer = try MemberSigner(vault.manager.member, of: vault.scene.log.vault, vault.manager.keys)
            let statement = try MemberStatement(.seen, by: signer, head)
            return try await vault.manager.client.put(
                "\(vault.scene.path)/seen", VaultScene.body(head, statement.signature))
        },
        route("DELETE own box", { try await $0.vault() }) { _, vault, _ in
            try await vault.manager.client.delete("\(vault.scene.path)/boxes/mine")
        },
        route("hand over", { try await $0.vault() }) { _, vault, _ in
            var scene = vault.scene
            let offered = try await scene.append(.offer(vault.manager.member))
            guard offered.status == 200 else { return offered }
            let accept = try scene.entry(.accept(scene.log.head.number), by: vault.manager)
            return try await vault.manager.client.post("\(scene.path)/owner", VaultScene.body(accept))
        },
        route("DELETE vault", { try await $0.vault() }) { written, vault, _ in
            try await written.client.delete(vault.scene.path)
        },
        route("DELETE account with vaults", { try await $0.vault() }) { written, _, _ in
            let key = JSONValue.string(written.account.passwordKey)
            return try await written.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key, "vaults": "delete"]))
        },
        route("DELETE account of a member", { try await $0.vault() }) { _, vault, _ in
            let key = JSONValue.string(vault.manager.account.passwordKey)
            return try await vault.manager.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key]))
        },
    ]

    /// Returns true for two acts that can write the same rows.
    func meets(_ other: WritingAct) -> Bool {
        let vaults = Set(Self.vaults.map(\.description))
        return (!vaults.contains(description) || other.isOnVaults)
            && (!vaults.contains(other.description) || isOnVaults)
    }

    /// True for acts on vaults, and those of accounts that vaults meet.
    private var isOnVaults: Bool {
        [
            "PUT item", "end session", "end other sessions", "change credential", "DELETE account", "log-in", "lock",
            "end sessions", "set plan", "delete", "purge", "export",
        ].contains(description) || Self.vaults.contains { $0.description == description }
    }
}
