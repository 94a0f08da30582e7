import HTTPCore

@testable import SalternServer

/// Secrets as the text that clients get. The server itself never makes a string of them.
private func text(_ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    writer.array { writer in write(&writer) }
    return (try? JSONParser().parse(writer.finish()).array()[0].string()) ?? ""
}

private func member(_ name: String, _ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    writer.object { writer in write(&writer) }
    return (try? JSONParser().parse(writer.finish()).object()[name]?.string()) ?? ""
}

extension SessionToken {
    var text: String { member("token") { write("token", to: &$0) } }
}

extension SecondFactorRecoveryCode {
    var text: String { SalternServerTests.text { write(to: &$0) } }
}

extension OneTimePasswords {
    var secretText: String {
        guard let ada = try? Userid("ada") else { return "" }
        return member("secret") { write(issuer: "", userid: ada, to: &$0) }
    }

    func uri(issuer: String, userid: Userid) -> String {
        member("uri") { write(issuer: issuer, userid: userid, to: &$0) }
    }
}
