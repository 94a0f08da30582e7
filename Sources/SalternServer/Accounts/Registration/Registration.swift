internal import HTTPCore
internal import Postgres

/// The rows that a registration stores, all or none.
struct Registration {
    let login: InsertLogin
    let account: InsertAccount
    let session: InsertSession
    /// True if a destination receives the opening of the session.
    var reportsSession = false

    /// Stores the registration. It waits for concurrent registrations of the same userid, so it uses a dedicated
    /// connection.
    ///
    /// - Throws: ``RegistrationProblem/useridTaken`` or a `PostgresError`.
    func store(in database: PostgresClient) async throws {
        do {
            try await database.withTransaction(key: .userid(login.userid)) { transaction in
                try await store(account, in: transaction)
            }
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    /// Stores the registration and uses up an invite, which decides the account's plan. A failed registration leaves
    /// the invite unused.
    ///
    /// - Throws: ``RegistrationProblem/invalidInvite``, ``RegistrationProblem/useridTaken`` (also for a repeated
    ///   registration, whose invite is used), or a `PostgresError`.
    func store(in database: PostgresClient, using invite: InviteCode) async throws {
        do {
            try await database.withTransaction(key: .invite(invite.hash)) { transaction in
                // The invite comes first: callers without one cannot test which userids exist.
                let consumed = try await transaction.execute(ConsumeInvite(hash: invite.hash, now: account.now)).first
                guard let consumed else { throw RegistrationProblem.invalidInvite }
                var account = account
                account.invite = consumed
                try await store(account, in: transaction)
            }
        } catch RegistrationProblem.invalidInvite {
            throw try await hasHappened(in: database, with: invite)
                ? RegistrationProblem.useridTaken : RegistrationProblem.invalidInvite
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    private func store(_ account: InsertAccount, in transaction: Transaction) async throws(PostgresError) {
        let event = ReportedEvent(accountID: account.accountID, kind: .accountCreated, now: account.now)
        if reportsSession {
            let opened = QueueOpenedSession(
                accountID: account.accountID, sessionID: session.sessionID, now: account.now)
            _ = try await transaction.execute(
                login, account, session, QueueAccountEvent(event: event), StoreAccountEvent(event: event), opened,
                StoreOpenedSession(queue: opened))
        } else {
            _ = try await transaction.execute(
                login, account, session, QueueAccountEvent(event: event), StoreAccountEvent(event: event))
        }
    }

    /// Returns true if the userid was registered with this invite: the client missed the reply and repeats the request.
    private func hasHappened(in database: PostgresClient, with invite: InviteCode) async throws -> Bool {
        guard let id = try await database.execute(FindInviteOfCode(hash: invite.hash)).first else { return false }
        let owner = try await database.execute(FindLogin(userid: login.userid)).first?.accountID ?? .random()
        return try await database.execute(FindInviteOfAccount(accountID: owner)).first == id
    }

    private static func meaning(of error: PostgresError) -> any Error {
        InsertLogin.isUseridTaken(error) ? RegistrationProblem.useridTaken : error
    }
}

/// Reasons to reject a registration.
enum RegistrationProblem: ProblemConvertible {
    case closed
    case useridTaken
    case inviteRequired
    /// Unknown, used, revoked or expired. Clients do not receive the reason.
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
