import CommandLineKit
import SalternClient

struct RotateKeys: Command {
    static let words = ["rotate"]
    static let summary = "seal everything anew with a new key: when somebody may have seen the old one"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        Password and recovery code stay as they are; all other sessions end. Nothing is changed before everything is changed at
        once; Ctrl-C before that leaves it as it was. What deleted items held cannot be restored from the server afterwards.
        A printed code trusts the old keys: this command and each later one say so until recovery create or recovery remove.
        After the loss of a device the password has to change, too: see saltern-client devices lost.
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
            "everything is sealed anew; all other sessions have ended\n" + findings.lines
        }
        try findings.end()
    }
}
