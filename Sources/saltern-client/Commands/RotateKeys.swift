import CommandLineKit
import SalternClient

struct RotateKeys: Command {
    static let words = ["rotate"]
    static let summary = "re-encrypt everything with a new key"
    static let example = "saltern-client rotate"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        For a key that may have leaked. Password and recovery code stay, and all other
        sessions end. Everything changes at once: Ctrl-C before that leaves everything
        unchanged. Deleted content can no longer be restored from the server.

        The recovery code still trusts the old keys: each command reports this until
        `recovery create` or `recovery remove`. After the loss of a device the password
        must change, too: see `saltern-client devices lost`.
        """

    private struct Record: Encodable {
        let findings: Findings

        private enum CodingKeys: CodingKey {
            case rotated
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(true, forKey: .rotated)
            try findings.encode(to: encoder)
        }
    }

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        let findings = try await proof.withAccount(console) { account, password in
            try await Findings.gather(in: account.vault, except: account.vault.notices()) {
                try await console.showingProgress(of: account.vault) {
                    try await account.vault.rotateKeys(password: password)
                }
            }
        }
        try console.show(Record(findings: findings), asJSON: proof.asJSON) {
            "everything is re-encrypted; all other sessions have ended\n" + findings.lines
        }
        try findings.end()
    }
}
