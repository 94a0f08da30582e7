import HTTPCore
import SalternTesting
import Testing

@Suite struct ReceiptTests {
    @Test func `a receipt is stored, shown as a date, and replaced`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            #expect(try await ada.client.get("/v1/account")["receiptUpdatedAt"] == nil)
            let first = try await ada.client.put("/v1/account/receipt", ["receipt": "MIIT…"])
            #expect(first.status == 200)
            #expect(first[""] == ["receiptUpdatedAt": "2026-01-01T00:00:00.000Z"])
            app.clock.advance(by: .seconds(60))
            // The same one again is not a change.
            let again = try await ada.client.put("/v1/account/receipt", ["receipt": "MIIT…"])
            #expect(again[""] == first[""])
            #expect(try await app.events(of: ada) == ["receipt_changed"])
            let second = try await ada.client.put("/v1/account/receipt", ["receipt": "\n"])
            #expect(second.string("receiptUpdatedAt") == "2026-01-01T00:01:00.000Z")
            #expect(try await ada.client.get("/v1/account")["receiptUpdatedAt"] == second["receiptUpdatedAt"])
            #expect(try await app.events(of: ada) == ["receipt_changed", "receipt_changed"])
        }
    }

    @Test func `a receipt has 1 byte to 64 KiB, however it is written`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let longest = String(repeating: "€", count: 21_845) + "x"
            #expect(try await ada.client.put("/v1/account/receipt", ["receipt": .string(longest)]).status == 200)
            let escaped = Array(("{\"receipt\":\"" + String(repeating: "\\u0041", count: 65_536) + "\"}").utf8)
            #expect(try await ada.client.send(.put, "/v1/account/receipt", body: escaped).status == 200)
            for bad in ["", longest + "x", "a\0b"] {
                let refused = try await ada.client.put("/v1/account/receipt", ["receipt": .string(bad)])
                #expect(refused.status == 422)
                #expect(refused.code == "invalid_receipt")
                #expect(refused.string("field") == "receipt")
            }
            #expect(try await ada.client.put("/v1/account/receipt", ["receipt": 1]).code == "wrong_type")
            #expect(try await ada.client.put("/v1/account/receipt", [:]).code == "missing_member")
        }
    }
}
