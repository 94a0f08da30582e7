internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/invitations`: appends an `invite` entry, and stores what its link opens.
struct CreateInvitation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let (entry, tokenHash, preview, keyBox) = try JSONBody.read(request) { members in
            (
                try members.entry(), try members.required("tokenHash", Self.tokenHash),
                try members.required("preview", KeyBox.sealed), try members.required("keyBox", KeyBox.sealed)
            )
        }
        guard case .invite(let terms) = entry.payload else { throw VaultProblem.otherRoute }
        let now = authorization.now
        let revision = try await authorization.transaction(in: vaultID, atLeast: .manager) { transaction, seat in
            let log = try await StoredLog(of: vaultID, in: transaction)
            let revision = try await AppendEntry.append(entry, to: log, seat, now: now)
            if revision != nil {
                transaction.enqueue(
                    InsertInvitation(
                        id: InvitationID(terms.id.bytes), vaultID: vaultID, tokenHash: tokenHash, preview: preview,
                        keyBox: keyBox, expiresAt: Timestamp(entryTime: terms.expiry)))
            }
            return revision
        }
        return AppendEntry.reply(revision == nil ? .ok : .created, entry, vault: nil, revision: revision)
    }

    private static func tokenHash(_ json: JSONValue) throws -> TokenHash {
        guard let bytes = Base64Text.decode(try json.text()), let digest = SHA256Digest(bytes) else {
            throw Problem(
                .unprocessableContent, "invalid_token_hash", detail: "`tokenHash` must be 32 bytes in base64.")
        }
        return TokenHash(digest)
    }
}

extension Timestamp {
    /// Converts the time of an entry.
    init(entryTime: EntryTime) {
        let since2000 = Int64(entryTime.seconds) - 946_684_800
        self.init(microsecondsSince2000: since2000 * 1_000_000)
    }
}

/// The token that a link contains: `sli_` and base64url of 32 bytes. Only its hash is stored.
enum InvitationToken {
    static let prefix = "sli_"
    static let secretByteCount = 32

    /// Reads `Authorization: Bearer sli_…`. Nil if the field is absent, repeated or malformed.
    static func presented(_ fields: RequestFields) -> TokenHash? {
        BearerSecret.read(fields, prefix: prefix, byteCount: secretByteCount) { TokenHash(SHA256.hash($0)) }
    }

    /// Reads the member `token` of a request with a session.
    static func hash(_ json: JSONValue) throws -> TokenHash {
        guard let secret = Base64Text.decodeSecure(try json.text()) else {
            throw Problem(.unprocessableContent, "invalid_token", detail: "`token` must be base64.")
        }
        return TokenHash(SHA256.hash(secret))
    }
}
