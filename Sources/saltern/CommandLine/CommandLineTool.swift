/// Finds the subcommand, reads its options, runs it, and turns what it throws into an exit status.
enum CommandLineTool {
    /// One line of the table of subcommands.
    private struct Entry {
        let words: [String]
        let summary: String
        let help: String
        let run: (_ words: [String], _ console: Console) async throws -> Void

        var name: String { words.joined(separator: " ") }

        init<C: Command>(_ type: C.Type) {
            words = C.words
            summary = C.summary
            help = C.help
            run = { words, console in
                var arguments = Arguments(words)
                let command = try C(&arguments)
                try arguments.finish()
                try await command.run(console)
            }
        }
    }

    private static var entries: [Entry] {
        [
            Entry(Serve.self),
            Entry(MigrateUp.self), Entry(MigrateStatus.self), Entry(MigrateVerify.self),
            Entry(CreateCertificate.self), Entry(ShowPins.self), Entry(ExportCertificate.self),
            Entry(RotateCertificate.self), Entry(RenewCertificate.self), Entry(CheckCertificate.self),
            Entry(CreateMasterKey.self), Entry(ListMasterKeys.self), Entry(RotateMasterKey.self),
            Entry(ResealSecrets.self), Entry(PruneMasterKeys.self),
            Entry(ListAccounts.self), Entry(ShowAccount.self), Entry(ListAccountEvents.self),
            Entry(LockAccount.self), Entry(UnlockAccount.self), Entry(EndSessions.self), Entry(SetAccountPlan.self),
            Entry(RemoveAccountSecondFactor.self), Entry(DeleteAccount.self),
            Entry(ListPlans.self), Entry(SetPlanLimits.self), Entry(ShowStatistics.self), Entry(PurgeNow.self),
            Entry(TellRestored.self),
            Entry(CreateInvites.self), Entry(ListInvites.self), Entry(RevokeInvite.self),
            Entry(ListAudit.self), Entry(VerifyAudit.self),
            Entry(CheckHealth.self), Entry(ExamineInstallation.self), Entry(ListStatements.self), Entry(ShowVersion.self),
        ]
    }

    private static let usageStatus: Int32 = 64

    /// Runs the command that `words` name.
    /// - Returns: the process's exit status: 0, 1 when the command failed, 64 when the words were wrong.
    static func run(_ words: [String], console: Console = .process()) async -> Int32 {
        guard let first = words.first else {
            console.writeError(overview)
            return usageStatus
        }
        if words == ["--help"] || words == ["-h"] || words == ["help"] {
            console.write(overview)
            return 0
        }
        if words == ["--version"] { return await run([ShowVersion.words[0]], console: console) }
        let words = first == "help" ? Array(words.dropFirst()) + ["--help"] : words
        let asksForHelp = words.contains("--help") || words.contains("-h")
        let spoken = Array(words.prefix { !$0.hasPrefix("-") })
        if let entry = entries.first(where: { spoken.starts(with: $0.words) }) {
            if asksForHelp {
                console.write("saltern \(entry.name): \(entry.summary)\n\n\(entry.help)\n")
                return 0
            }
            return await run(entry, Array(words.dropFirst(entry.words.count)), console)
        }
        let group = entries.filter { $0.words.first == spoken.first && spoken.count == 1 }
        guard !group.isEmpty else {
            console.writeError("saltern: unknown command '\(spoken.joined(separator: " "))'; see saltern --help\n")
            return usageStatus
        }
        if asksForHelp {
            console.write(table(of: group))
            return 0
        }
        console.writeError("saltern \(spoken[0]) needs one of:\n\(table(of: group))")
        return usageStatus
    }

    private static func run(_ entry: Entry, _ words: [String], _ console: Console) async -> Int32 {
        do {
            try await entry.run(words, console)
            return 0
        } catch let error as UsageError {
            console.writeError("saltern \(entry.name): \(error.message); see saltern \(entry.name) --help\n")
            return usageStatus
        } catch let failure as CommandFailure {
            for message in failure.messages { console.writeError("saltern \(entry.name): \(message)\n") }
            return 1
        } catch {
            console.writeError("saltern \(entry.name): \(error)\n")
            return 1
        }
    }

    private static var overview: String {
        """
        saltern: an account and credential server that never sees a password.

        usage: saltern COMMAND [OPTIONS]

        \(table(of: entries))
        Every setting is an environment variable SALTERN_…; `saltern serve --help` lists them.
        `saltern COMMAND --help` says more about a command.

        """
    }

    private static func table(of entries: [Entry]) -> String {
        let width = entries.map(\.name.count).max() ?? 0
        return entries.map { entry in
            let padding = String(repeating: " ", count: width - entry.name.count)
            return "  \(entry.name)\(padding)  \(entry.summary)\n"
        }.joined()
    }
}
