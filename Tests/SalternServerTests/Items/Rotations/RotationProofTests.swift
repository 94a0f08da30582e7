import HTTPCore
import SalternTesting
import Testing

/// What a commit proves, and what it does not.
@Suite struct RotationProofTests {
    @Test func `a commit whose new key is in force for another reason changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<3 { _ = try await ada.createItem(RotationClient.item(Fixtures.passwordKey(Fixtures.uuid()))) }
            let before = try await ada.client.bodies()
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            // The very key that the rotation was sealed for, but by a change that swaps no item.
            let changed = try await ada.client.put(
                "/v1/account/credential",
                [
                    "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(rotation.newKey),
                    "kdf": ["iterations": 600_000],
                ])
            #expect(changed.status == 200, "\(changed)")

            // The old key is not the present one any more, and the new one proves nothing about this rotation.
            let reply = try await rotation.commit()
            #expect(reply.status == 403, "\(reply)")
            #expect(reply.code == "wrong_credentials")
            #expect(try await ada.client.bodies() == before)
            #expect(try await app.logsIn(ada, rotation.newKey))
            // Nothing was used up: whoever shows the present key can go on, or throw it away.
            #expect(try await app.stored().stagedItems == 3)
            #expect(try await ada.client.delete("/v1/rotations/\(rotation.id)").status == 204)
        }
    }
}
