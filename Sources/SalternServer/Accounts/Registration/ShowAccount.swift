internal import HTTPCore

/// `GET /v1/account`: returns the caller's account, the plan's limits and the usage.
struct ShowAccount: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let find = FindAccount(now: authorization.now, idleSince: authorization.idleSince)
        guard let account = try await authorization.read(find).first else { throw Unauthenticated() }
        return .json(capacity: 512) { writer in
            writer.object { writer in
                writer.member("accountId", authorization.accountID)
                writer.member("userid", account.userid)
                writer.member("plan", account.plan)
                writer.object("limits") { writer in account.limits.write(to: &writer) }
                writer.object("usage") { writer in
                    writer.member("items", account.items)
                    writer.member("bytes", account.bytes)
                    writer.member("deletedItems", account.deletedItems)
                    writer.member("deletedBytes", account.deletedBytes)
                    writer.member("versions", account.versions)
                    writer.member("versionBytes", account.versionBytes)
                    writer.member("sessions", account.sessions)
                    writer.member("shares", account.shares)
                    writer.member("vaults", account.vaults)
                    writer.member("memberships", account.memberships)
                }
                writer.object("secondFactor") { writer in
                    writer.member("totp", account.hasSecondFactor)
                    writer.member("recoveryCodesLeft", account.recoveryCodes)
                }
                writer.object("recovery") { writer in
                    writer.member("set", account.recoverySetAt != nil)
                    if let createdAt = account.recoverySetAt { writer.member("createdAt", createdAt) }
                }
                writer.member("createdAt", account.createdAt)
                writer.member("revisionBase", account.revisionBase)
                if let updatedAt = account.receiptUpdatedAt { writer.member("receiptUpdatedAt", updatedAt) }
            }
        }
    }
}
