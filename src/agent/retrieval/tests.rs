//! Tests of retrieval over a masked repo.

use super::*;
use crate::code::{MaskTarget, Module};

const CODE: &str = "def variance(values):\n    \"\"\"The variance of values around their mean.\"\"\"\n    SECRET = mean(values)\n    return sum((x - SECRET) ** 2 for x in values)\n\n\ndef mean(values):\n    \"\"\"The mean of values.\"\"\"\n    return sum(values) / len(values)\n\n\ndef spread(values):\n    return variance(values) ** 0.5\n\n\ndef hello(name):\n    print(name)\n";

const PAPER: &str = "# P\n\n## Summary\n\nWe sort things.\n\n## Spread\n\nThe variance is the mean of squares around the mean.\n\n## Sockets\n\nOpen a socket.\n";

fn masked() -> Code {
    let module = Module::parse("m.py", CODE.into()).unwrap();
    let bytes = module.mask(&[MaskTarget { function: 0, description: None }]).unwrap();
    Code::new([("m.py".into(), bytes)])
}

fn wanted(code: &Code) -> RetrievalQuery {
    let function = TaskFunction {
        at: "m.py::variance".into(),
        description: "The variance.".into(),
        passages: vec!["Spread".into(), "Elsewhere".into()],
        region: None,
    };
    RetrievalQuery::new(&function, code).unwrap()
}

fn retriever(paper: PaperChoice, code: CodeChoice) -> Retriever {
    Retriever { paper, code, passages: 1, snippets: 10, embedder: None }
}

#[tokio::test]
async fn each_setting_for_the_paper_text_selects_the_expected_passages() {
    let code = masked();
    let wanted = wanted(&code);
    let headings = async |paper| {
        let found = retriever(paper, CodeChoice::None).passages(PAPER, &wanted).await.unwrap();
        found.into_iter().map(|passage| passage.heading).collect::<Vec<_>>().join(",")
    };
    assert_eq!(headings(PaperChoice::None).await, "");
    assert_eq!(headings(PaperChoice::Full).await, "Summary,Spread,Sockets");
    assert_eq!(headings(PaperChoice::Oracle).await, "Spread");
    assert_eq!(headings(PaperChoice::Bm25).await, "Spread");
    let found = retriever(PaperChoice::Bm25, CodeChoice::None).passages(PAPER, &wanted).await.unwrap();
    assert!((recall(&wanted.oracle, &found) - 0.5).abs() < 1e-9);
}

#[tokio::test]
async fn no_retrieval_method_returns_an_original_body_or_the_masked_function() {
    let code = masked();
    let wanted = wanted(&code);
    for choice in [CodeChoice::Bm25, CodeChoice::Ast, CodeChoice::Embedding] {
        let found = retriever(PaperChoice::None, choice).snippets(&code, &wanted, None, None).await.unwrap();
        assert!(found.iter().any(|snippet| snippet.at == "m.py::mean"), "{choice:?}");
        assert!(found.iter().all(|snippet| !snippet.text.contains("SECRET") && snippet.at != "m.py::variance"));
    }
    let near = retriever(PaperChoice::None, CodeChoice::Ast).snippets(&code, &wanted, None, None).await.unwrap();
    assert_eq!(near[0].at, "m.py::spread", "the caller comes first");
    let hidden = retriever(PaperChoice::None, CodeChoice::Bm25);
    assert!(hidden.snippets(&code, &wanted, None, Some(Path::new("m.py"))).await.unwrap().is_empty());
}
