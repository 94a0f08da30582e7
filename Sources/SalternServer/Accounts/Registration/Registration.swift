internal import HTTPCore
internal import Postgres

/// What a registration stores, all or nothing.
struct Registration {
    let login: InsertLogin
    let account: InsertAccount
    let session: InsertSession

    /// Stores it. Whoever takes the same userid at the same moment is waited for, so it has a connection of its own.
    /// - Throws: ``RegistrationProblem/useridTaken`` or a `PostgresError`.
    func store(in database: PostgresClient) async throws {
        do {
            try await database.withTransaction(key: .userid(login.userid)) { transaction in
                _ = try await transaction.execute(login, account, session)
            }
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    /// Stores it and uses an invite up, which gives the account its plan. An invite is not used up by a registration
    /// that fails.
    ///
    /// - Throws: ``RegistrationProblem/invalidInvite``; ``RegistrationProblem/useridTaken``, which also whoever sends the
    ///   same registration again hears rather than that the invite is used; or a `PostgresError`.
    func store(in database: PostgresClient, using invite: InviteCode) async throws {
        do {
            try await database.withTransaction(key: .invite(invite.hash)) { transaction in
                // The invite comes first: without one nobody learns whether a userid is taken.
                let consumed = try await transaction.execute(ConsumeInvite(hash: invite.hash, now: account.now)).first
                guard let consumed else { throw RegistrationProblem.invalidInvite }
                var account = account
                account.invite = consumed
                _ = try await transaction.execute(login, account, session)
            }
        } catch RegistrationProblem.invalidInvite {
            throw try await hasHappened(in: database, with: invite)
                ? RegistrationProblem.useridTaken : RegistrationProblem.invalidInvite
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    /// Whether the userid has come with this invite: then the client missed the reply and asks again.
    private func hasHappened(in database: PostgresClient, with invite: InviteCode) async throws -> Bool {
        guard let id = try await database.execute(FindInviteOfCode(hash: invite.hash)).first else { return false }
        let owner = try await database.execute(FindLogin(userid: login.userid)).first?.accountID ?? .random()
        return try await database.execute(FindInviteOfAccount(accountID: owner)).first == id
    }

    private static func meaning(of error: PostgresError) -> any Error {
        InsertLogin.isUseridTaken(error) ? RegistrationProblem.useridTaken : error
    }
}

/// Why nobody was registered.
enum RegistrationProblem: ProblemConvertible {
    case closed
    case useridTaken
    case inviteRequired
    /// Unknown, used, revoked or expired: nobody is told which.
    case invalidInvite

    var problem: Problem {
        switch self {
        case .closed:
            Problem(.forbidden, "registration_closed", detail: "Registration is closed.")
        case .useridTaken:
            Problem(.conflict, "userid_taken", detail: "The userid is taken.", field: "userid")
        case .inviteRequired:
            Problem(.forbidden, "invite_required", detail: "Registration requires an `invite`.", field: "invite")
        case .invalidInvite:
            Problem(.forbidden, "invalid_invite", detail: "`invite` is not valid or no longer valid.", field: "invite")
        }
    }
}
