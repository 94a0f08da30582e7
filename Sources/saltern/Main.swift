import CommandLineKit
import Foundation
import Glibc
import HTTPCore
import SalternServer

/// `saltern`: the server and its administrative commands.
@main
struct Main {
    /// Not `async`: an async `main` unblocks every signal in the main thread while it waits, so no signal could be
    /// kept.
    static func main() {
        StandardDescriptors.occupy()
        let words = ProcessArguments.words
        // Before any other thread, because threads inherit it.
        if words.first == Serve.words.first { ServerSignals.block() }
        ProcessLimits.forbidDumps()
        // A peer that has gone must not end the process. Every write reports it as an error.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run clean-up of libraries (OpenSSL, C++) beside threads that still free
        // their memory: one of two thousand successful commands crashed.
        Task.detached { _exit(await CommandLineTool.saltern.run(words)) }
        while true { pause() }
    }
}

extension CommandLineTool {
    static let saltern = CommandLineTool(
        "saltern", purpose: "an account and sync server that never receives a password.",
        notes: """
            Settings are environment variables: see `saltern serve --help`. Commands that
            manage the database connect with SALTERN_OWNER_DATABASE_URL, the role that owns
            the schema, or with SALTERN_DATABASE_URL. Each variable can name a file instead:
            SALTERN_OWNER_DATABASE_URL_FILE and so on.

            """,
        commands: [
            Serve.self, ReloadServer.self,
            MigrateUp.self, MigrateFinish.self, MigrateDistribute.self, MigrateStatus.self, MigrateVerify.self,
            CreateCertificate.self, ShowPins.self, ExportCertificate.self, RotateCertificate.self,
            RenewCertificate.self, InstallCertificate.self, CheckCertificate.self,
            CreateMasterKey.self, ListMasterKeys.self, RotateMasterKey.self, ResealSecrets.self, PruneMasterKeys.self,
            CreateSigningKey.self, ListSigningKeys.self, RotateSigningKey.self, PruneSigningKeys.self,
            ListAccounts.self, ShowAccount.self, ListAccountEvents.self, ListAccountSessions.self, LockAccount.self,
            UnlockAccount.self,
            EndSessions.self, SetAccountPlan.self, RemoveAccountSecondFactor.self, RestoreAccountKeyring.self,
            DeleteAccount.self,
            ListPlans.self, SetPlanLimits.self, RemovePlanCommand.self, ShowStatistics.self, PurgeNow.self,
            BackUpDatabase.self, RestoreDatabase.self, TellRestored.self,
            CreateInvites.self, ListInvites.self, RevokeInvite.self,
            CreateService.self, ListServices.self, RemoveServiceCommand.self,
            CreateDestination.self, ListDestinations.self, RotateDestination.self, RemoveDestinationCommand.self,
            ListEvents.self, RetryEvents.self, DropEvents.self,
            ListAudit.self, VerifyAudit.self,
            CheckHealth.self, ExamineInstallation.self, ListStatements.self, ShowVersion.self,
        ])
}

struct ShowVersion: Command {
    static let words = ["version"]
    static let summary = "print the version of this program"
    static let usage = [""]
    static let example = "saltern version"
    static let help = """
        The version is the one in CHANGELOG.md. `saltern --version` is the same.
        """

    /// The version of this release, or of the next one.
    static let version = String(decoding: PackageResources.VERSION, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws { console.print("saltern \(Self.version)") }
}

struct ListStatements: Command {
    static let words = ["statements"]
    static let summary = "print every SQL statement of the server as JSON lines"
    static let usage = [""]
    static let example = "saltern statements"
    static let help = """
        For benchmarks and reviews. Each line is an object with the members name and
        sql.
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        for statement in Application.statements {
            console.printJSON { writer in
                writer.member("name", statement.name)
                writer.member("sql", statement.sql)
            }
        }
    }
}
