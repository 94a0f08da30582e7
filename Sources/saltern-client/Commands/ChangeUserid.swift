import CommandLineKit
import SalternClient

struct ChangeUserid: Command {
    static let words = ["userid"]
    static let summary = "change the userid"
    static let usage = ["USERID [OPTIONS]"]
    static let example = "saltern-client userid ada@example.net"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        All other sessions end. Password, items and unsent changes stay. Other devices
        log in again with the new userid. The account keeps its local name.
        """

    private struct Record: Encodable {
        let userid: String
        let notices: [NoticeRecord]
    }

    private let proof: ProvenCommand
    private let userid: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        proof = try ProvenCommand(&arguments)
        userid = try arguments.word("the new userid")
    }

    func run(_ console: Console) async throws {
        let stopped = try await proof.withAccount(console) { account, password in
            let known = try await account.vault.notices()
            try await account.vault.changeUserid(to: userid, password: password)
            var profile = try account.profiles.profile(account.name) ?? account.profile
            profile.userid = userid
            try account.profiles.save(profile, account.name)
            return try await StoppedPasskeys(in: account.vault, except: known)
        }
        try console.show(Record(userid: userid, notices: stopped.notices), asJSON: proof.asJSON) {
            "the userid is \(VisibleText.visible(userid)); all other sessions have ended\n" + stopped.lines
        }
    }
}
