import CommandLineKit
import EventLoop
import Foundation
import HTTPCore
import TransportSecurity

/// `saltern doctor`: checks all that `saltern serve` needs, under the same conditions, and changes nothing.
struct ExamineInstallation: Command {
    static let words = ["doctor"]
    static let summary = "check the installation and report problems"
    static let example = "saltern doctor"
    static let help = """
          --json           one object, for scripts: {"problems": N, "warnings": N,
                           "findings": [{subject, severity, text}]}

        Checks settings, addresses, certificate, keys, database and limits. Reads the
        settings of `saltern serve`, connects as the server's role, and also as the
        owner where SALTERN_OWNER_DATABASE_URL is set. Changes nothing. Prints a line
        for each check. Exit status 1: there is a problem.
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let findings = try await examine(console)
        try console.report(findings, asJSON: asJSON)
    }

    private func examine(_ console: Console) async throws -> [Finding] {
        // Problems with the setting itself are reported with all others.
        var settings = Settings(console.environment)
        let tls = settings.certificateDirectory()
        let certificate = tls.check().map(Finding.init)
        let configuration: ServeConfiguration
        do throws(CommandFailure) {
            configuration = try ServeConfiguration(
                console.environment, coreCount: ProcessInfo.processInfo.activeProcessorCount)
        } catch {
            return error.messages.map { Finding("configuration", .problem, $0) } + certificate
        }
        let loop = try EventLoop(name: "doctor")
        try loop.start()
        defer { loop.stop() }
        let database = await loop.run { await DatabaseExamination(configuration: configuration, loop: loop).findings() }
        return [Finding("configuration", .fine, "every setting can be used")] + certificate
            + PlaceExamination(configuration: configuration).findings() + [examineDescriptors(configuration)] + database
            + (await OwnerExamination.findings(console))
    }

    private func examineDescriptors(_ configuration: ServeConfiguration) -> Finding {
        let (limit, needed) = (ProcessLimits.raiseDescriptors(), configuration.descriptorCount)
        let text = "the server may come to need \(needed) descriptors and can have \(limit)"
        guard limit < needed else { return Finding("descriptors", .fine, text) }
        return Finding("descriptors", .warning, text + ": raise LimitNOFILE, or lower SALTERN_MAX_CONNECTIONS")
    }
}
