internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/invitations`: appends an `invite` entry, and stores what its link opens.
struct CreateInvitation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .manager)
        let (entry, tokenHash, preview, keyBox) = try JSONBody.read(request) { members in
            (
                try members.entry(), try members.required("tokenHash", Self.tokenHash),
                try members.required("preview", KeyBox.content), try members.required("keyBox", KeyBox.content)
            )
        }
        guard case .invite(let terms) = entry.payload else { throw VaultProblem.otherRoute }
        let insert = InsertInvitation(
            id: InvitationID(terms.id.bytes), vaultID: vaultID, tokenHash: tokenHash, preview: preview, keyBox: keyBox,
            now: authorization.now, expiresAt: Timestamp(entryTime: terms.expiry))
        let revision = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .manager, pace: request.pace
        ) { transaction, seat, log in
            let revision = try await AppendEntry.append(entry, to: log, seat)
            // The id is public, so an invitation to another vault can have it.
            if revision != nil, try await transaction.execute(insert).isEmpty {
                throw VaultProblem.refused(.repeatedID)
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
