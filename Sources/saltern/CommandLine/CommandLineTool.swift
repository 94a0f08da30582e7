/// Finds the subcommand, reads its options, runs it, and turns what it throws into an exit status.
enum CommandLineTool {
    static let commands: [any Command.Type] = [
        Serve.self,
        MigrateUp.self, MigrateStatus.self, MigrateVerify.self,
        CreateCertificate.self, ShowPins.self, ExportCertificate.self, RotateCertificate.self, CheckCertificate.self,
        CheckHealth.self, ListStatements.self,
    ]

    static func run(_ words: [String], console: Console = .process()) async -> Int32 {
        if words.isEmpty || words == ["--help"] || words == ["-h"] || words == ["help"] {
            console.write(overview)
            return words.isEmpty ? 64 : 0
        }
        let words = words.first == "help" ? Array(words.dropFirst()) + ["--help"] : words
        let spoken = Array(words.prefix { !$0.hasPrefix("-") })
        guard let command = commands.first(where: { spoken.starts(with: $0.words) }) else {
            let group = commands.filter { $0.words.first == spoken.first }
            guard !group.isEmpty, spoken.count == 1 else {
                console.writeError("saltern: unknown command '\(spoken.joined(separator: " "))'; see saltern --help\n")
                return 64
            }
            console.write(table(of: group))
            return words.contains("--help") ? 0 : 64
        }
        if words.contains("--help") || words.contains("-h") {
            console.write("saltern \(command.name): \(command.summary)\n\n\(command.help)\n")
            return 0
        }
        return await run(command, Array(words.dropFirst(command.words.count)), console)
    }

    private static func run(_ type: any Command.Type, _ words: [String], _ console: Console) async -> Int32 {
        do {
            var arguments = Arguments(words)
            let command = try type.init(&arguments)
            try arguments.finish()
            try await command.run(console)
            return 0
        } catch let error as UsageError {
            console.writeError("saltern \(type.name): \(error.message); see saltern \(type.name) --help\n")
            return 64
        } catch let failure as CommandFailure {
            for message in failure.messages { console.writeError("saltern \(type.name): \(message)\n") }
            return 1
        } catch {
            console.writeError("saltern \(type.name): \(error)\n")
            return 1
        }
    }

    private static var overview: String {
        """
        saltern: an account and credential server that never sees a password.

        usage: saltern COMMAND [OPTIONS]

        \(table(of: commands))
        Every setting is an environment variable SALTERN_…; `saltern serve --help` lists them.
        `saltern COMMAND --help` says more about a command.

        """
    }

    private static func table(of commands: [any Command.Type]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        return commands.map { command in
            let padding = String(repeating: " ", count: width - command.name.count)
            return "  \(command.name)\(padding)  \(command.summary)\n"
        }.joined()
    }
}
