import HTTPCore
import SalternTesting

@testable import SalternServer

/// Bodies that routes understand, for tests that go through all routes.
enum RouteBodies {
    /// A body for a route, by the name that it has in the log.
    static func body(for route: String) -> JSONValue {
        // Items of a vault have the bodies of an account's.
        switch route.replacing("/v1/vaults/{vault}/", with: "/v1/") {
        case "POST /v1/vaults", "POST /v1/log", "POST /v1/owner": ["entry": "AQ=="]
        case "POST /v1/invitations":
            ["entry": "AQ==", "tokenHash": .string(Fixtures.passwordKey("token")), "preview": "AQ==", "keyBox": "AQ=="]
        case "POST /v1/invitations/{id}/acceptance": ["entry": "AQ==", "token": "AQ=="]
        case "PUT /v1/items/{id}": ItemTests.item()
        case "POST /v1/items/batch": ["operations": [BatchTests.put(Fixtures.uuid(), 0, ItemTests.item())]]
        case "PUT /v1/account/keyring": ["keyring": .string(Fixtures.sealed())]
        case "PUT /v1/account/credential": object(keyChange)
        case "PUT /v1/account/userid": object(keyChange.merging(["userid": .string(Fixtures.userid())]) { $1 })
        case "POST /v1/account/totp/confirm": ["totp": "123456"]
        case "POST /v1/account/passkeys/confirm":
            [
                "currentPasswordKey": .string(Fixtures.passwordKey("present")), "name": "Key", "logsIn": false,
                "credential": [
                    "id": "AQ", "type": "public-key",
                    "response": ["clientDataJSON": "AQ", "attestationObject": "AQ", "publicKeyAlgorithm": -7],
                ],
            ]
        case "POST /v1/account/passkeys/options":
            ["purpose": "exportAccount", "bodySHA256": "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="]
        case "PATCH /v1/account/passkeys/{id}": ["name": "Key"]
        case "PUT /v1/account/passkeys/{id}/box":
            ["currentPasswordKey": .string(Fixtures.passwordKey("present")), "sealedPrivateKey": "AQ==", "box": "AQ=="]
        case "POST /v1/tokens": ["audience": "billing"]
        case "PUT /v1/account/receipt": ["receipt": "receipt"]
        case "POST /v1/shares", "PUT /v1/shares/{id}":
            [
                "format": "aes-256-gcm", "salt": "AQIDBAUGBwg=", "iterations": 1000,
                "sealed": .string(Fixtures.sealed()),
            ]
        case "PUT /v1/account/recovery":
            [
                "currentPasswordKey": .string(Fixtures.passwordKey("present")),
                "recoveryKey": .string(Fixtures.passwordKey("recovery")),
            ]
        case "PUT /v1/rotations/{id}/items":
            [
                "items": [
                    [
                        "id": .string(Fixtures.uuid()), "ifRevision": 1, "format": "aes-256-gcm",
                        "body": .string(Fixtures.sealed()),
                    ]
                ]
            ]
        case "POST /v1/rotations/{id}/commit": object(keyChange)
        // What a dangerous call carries at least.
        default: ["currentPasswordKey": .string(Fixtures.passwordKey("present"))]
        }
    }

    /// A path that the template of a route fits, for the thing with this UUID where things have UUIDs.
    static func path(_ template: String, id: some StringProtocol) -> String {
        template.replacing("{id}", with: template.hasPrefix("/v1/shares/") ? ShareID.random().text : String(id))
            .replacing("{vault}", with: String(id)).replacing("{revision}", with: "1").replacing("{number}", with: "1")
    }

    private static var keyChange: [String: JSONValue] {
        [
            "currentPasswordKey": .string(Fixtures.passwordKey("present")),
            "passwordKey": .string(Fixtures.passwordKey("new")), "kdf": ["iterations": 600_000],
        ]
    }

    private static func object(_ members: [String: JSONValue]) -> JSONValue {
        .object(JSONObject(members.map { (name: $0.key, value: $0.value) }))
    }
}
