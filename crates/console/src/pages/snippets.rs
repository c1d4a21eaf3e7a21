//! Code with which a developer uses a key.

/// The placeholder where the key itself may not be shown.
pub(crate) const KEY_PLACEHOLDER: &str = "YOUR_KEY";

/// Code for one tool.
#[derive(Clone, Debug)]
pub(crate) struct Snippet {
    /// The name of the tool, such as `curl`.
    pub(crate) tool: &'static str,
    /// The `id` of its element.
    pub(crate) id: &'static str,
    pub(crate) code: String,
}

/// Code that reads the number of the newest block with each tool.
pub(crate) fn snippets(base_url: &str, key: &str) -> Vec<Snippet> {
    let url = format!("{base_url}{key}");
    let snippet = |tool, id, code| Snippet { tool, id, code };
    vec![
        snippet("curl", "snippet-curl", curl(base_url, key, "eth_blockNumber", "[]")),
        snippet(
            "ethers",
            "snippet-ethers",
            format!(
                "import {{ JsonRpcProvider }} from \"ethers\";\n\n\
                 const provider = new JsonRpcProvider(\"{url}\");\n\
                 console.log(await provider.getBlockNumber());"
            ),
        ),
        snippet(
            "viem",
            "snippet-viem",
            format!(
                "import {{ createPublicClient, http }} from \"viem\";\n\n\
                 const client = createPublicClient({{ transport: http(\"{url}\") }});\n\
                 console.log(await client.getBlockNumber());"
            ),
        ),
        snippet(
            "web3.py",
            "snippet-web3py",
            format!(
                "from web3 import Web3\n\n\
                 w3 = Web3(Web3.HTTPProvider(\"{url}\"))\n\
                 print(w3.eth.block_number)"
            ),
        ),
        snippet(
            "alloy",
            "snippet-alloy",
            format!(
                "use alloy::providers::{{Provider, ProviderBuilder}};\n\n\
                 let provider = ProviderBuilder::new().connect(\"{url}\").await?;\n\
                 println!(\"{{}}\", provider.get_block_number().await?);"
            ),
        ),
        snippet("cast", "snippet-cast", format!("cast block-number --rpc-url {url}")),
    ]
}

/// A curl line for a call. `params` is a JSON array.
pub(crate) fn curl(base_url: &str, key: &str, method: &str, params: &str) -> String {
    // A quote would end the argument of the shell.
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).replace('\'', r"'\''");
    format!("curl -s {base_url}{key} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")
}

/// The same call with ethers.
pub(crate) fn ethers(base_url: &str, key: &str, method: &str, params: &str) -> String {
    format!(
        "import {{ JsonRpcProvider }} from \"ethers\";\n\n\
         const provider = new JsonRpcProvider(\"{base_url}{key}\");\n\
         console.log(await provider.send(\"{method}\", {params}));"
    )
}

/// The same call with viem.
pub(crate) fn viem(base_url: &str, key: &str, method: &str, params: &str) -> String {
    format!(
        "import {{ createPublicClient, http }} from \"viem\";\n\n\
         const client = createPublicClient({{ transport: http(\"{base_url}{key}\") }});\n\
         console.log(await client.request({{ method: \"{method}\", params: {params} }}));"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_snippet_has_the_whole_address() {
        for Snippet { tool, code, .. } in snippets("https://rpc.example/v3/", "abc") {
            assert!(code.contains("https://rpc.example/v3/abc"), "{tool}");
        }
    }

    #[test]
    fn a_quote_does_not_end_the_argument_of_curl() {
        let line = curl("http://127.0.0.1:8545/v3/", "demo", "eth_call", r#"["'; rm -rf / #"]"#);
        assert!(line.contains(r#"["'\''; rm -rf / #"]"#), "{line}");
    }
}
